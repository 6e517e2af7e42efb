// What a task asks and what an answer gives away, in plain words.

import { flipThreshold } from "../client/coins.js";
import { ONE, writeDecimal } from "../client/decimals.js";
import { deriveQuery } from "../client/sketches.js";

/** @typedef {import("../client/messages.js").Task} Task */

/** @param {number} value */
const percent = (value) => (value < 0.001 ? "less than 0.1%" : `${(100 * value).toFixed(1)}%`);

/** @param {bigint} epsilon */
const asNumber = (epsilon) => Number(epsilon) / Number(ONE);

/** The factor by which an observer's odds can change. @param {bigint} epsilon */
export function odds(epsilon) {
  const factor = Math.exp(Math.min(asNumber(epsilon), 700));
  return factor < 1000 ? String(Number(factor.toPrecision(3))) : factor.toExponential(1);
}

/** How often each bit is flipped. @param {Task} task */
export const flipChance = (task) => Number(flipThreshold(task.questionEpsilon)) / 2 ** 64;

/** @param {number} count */
const films = (count) => (count === 1 ? "1 film" : `${count} films`);

/** The kind of question. The exact one is shown after answering, so that nobody decides by it whether to answer. @param {Task} task */
function question(task) {
  switch (task.sketch) {
    case "maxsense":
      return `Is any of ${films(task.setSize)}, drawn by a public lottery, one that you liked?`;
    case "multi-maxsense":
      return `About each of ${task.questions} sets of ${films(task.setSize)}, drawn by a public lottery: is any of them one that you liked?`;
    case "pairwise":
      return task.publicRated
        ? "Do you think the same of two of the films that you rated, drawn by a public lottery?"
        : "Did you rate both of two films, drawn by a public lottery, and the same?";
    case "projection":
      return "Each film gets two public random signs. Do your likes and dislikes lean the same way along both?";
  }
}

/**
 * The offer as terms and what they mean.
 * @param {Task} task
 * @param {{ spent: string, lifetime: string }} diary
 * @returns {[string, string][]}
 */
export function offer(task, diary) {
  const flips = percent(flipChance(task));
  const bits = task.questions === 1 ? "One bit, yes or no." : `${task.questions} bits, each yes or no.`;
  return [
    ["The question", question(task)],
    [
      "What is sent",
      `${bits} Before it leaves, ${task.questions === 1 ? "it is" : "each is"} turned into its opposite with probability ${flips}. ` +
        "With it go the campaign’s number and your token’s, 28 bytes in all. As with any request the server sees your network address.",
    ],
    [
      "What it gives away",
      `Whatever someone believed about your ratings before, seeing this answer changes their odds by at most a factor of ${odds(task.epsilon)}. ` +
        `That you took part${task.publicRated ? ", and which films you rated," : ""} is not hidden. You can always say that the bit was turned.`,
    ],
    [
      "What it costs",
      `ε = ${writeDecimal(task.epsilon)} of your lifetime’s ${diary.lifetime}; ${diary.spent} is spent so far.`,
    ],
    ["If you rated nothing", "An answer is sent all the same, so that answering says nothing about your ratings."],
  ];
}

/**
 * What was asked and said, once it is sent.
 * @param {Task} task
 * @param {Uint8Array} report
 * @param {number[]} rated
 */
export function answered(task, report, rated) {
  const view = new DataView(report.buffer, report.byteOffset);
  const said = view.getUint32(24, true);
  const query = deriveQuery(task, view.getUint32(12, true), rated);
  const names = (/** @type {Iterable<number>} */ items) => [...new Set(items)].map((item) => task.items[item]).join(", ");
  const word = (/** @type {number} */ place) => (((said >>> place) & 1) === 1 ? "yes" : "no");
  const about = task.sketch === "projection" || !query.length || task.publicRated ? "" : ` It was about: ${query.map(names).join("; ")}.`;
  const words = Array.from({ length: task.questions }, (_, place) => word(place)).join(", ");
  return `You sent “${words}”, which is the opposite of the truth with probability ${percent(flipChance(task))}${task.questions > 1 ? " each" : ""}.${about}`;
}

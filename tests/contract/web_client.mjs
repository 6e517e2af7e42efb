// Runs the browser's client on cases that Python made, and says what came out. In Node: one JSON case per line of stdin.

import { answer } from "../../web/client/answering.js";
import { sha256, toHex } from "../../web/client/bytes.js";
import { SecureCoins, flipThreshold } from "../../web/client/coins.js";
import { MessageError } from "../../web/client/errors.js";
import { Task, Token, readReport, writeReport } from "../../web/client/messages.js";
import { Model, recommend } from "../../web/client/recommending.js";
import { deriveQuery, encodeQuery, trueBits } from "../../web/client/sketches.js";
import { Stream, block } from "../../web/client/stream.js";

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const read = async (text) => Task.fromJson(text);
const tokenFor = (task, serial, tag = "00".repeat(8)) => new Token(task.shortId, serial, bytes(tag));

/** Coins that say what they are told; Python's test has the same. */
class WrittenCoins {
  constructor(words) {
    this.words = words.map(BigInt);
    this.at = 0;
  }
  next() {
    this.at += 1;
    return this.words[(this.at - 1) % this.words.length];
  }
  below(n) {
    return Number(this.next() % BigInt(n));
  }
  chance(threshold) {
    return this.next() < threshold;
  }
}

/** Every outcome of the coins in turn: for each result, exact probabilities as denominators and the sum of numerators over each. */
function lawOf(experiment) {
  const law = {};
  let path = [];
  while (path) {
    const taken = [];
    const choose = (weights) => {
      const branch = taken.length < path.length ? path[taken.length] : 0;
      taken.push([branch, weights]);
      return branch;
    };
    const outcome = experiment({
      below: (n) => choose(Array(n).fill(1n)),
      chance: (threshold) => choose([threshold, 2n ** 64n - threshold]) === 0,
    });
    const [top, bottom] = taken.reduce(
      ([a, b], [branch, weights]) => [a * weights[branch], b * weights.reduce((x, y) => x + y)],
      [1n, 1n],
    );
    law[outcome] ??= {};
    law[outcome][bottom] = (law[outcome][bottom] ?? 0n) + top;
    const last = taken.findLastIndex(([branch, weights]) => branch + 1 < weights.length);
    path = last < 0 ? null : [...taken.slice(0, last).map(([branch]) => branch), taken[last][0] + 1];
  }
  for (const parts of Object.values(law)) for (const bottom in parts) parts[bottom] = parts[bottom].toString();
  return law;
}

const plainBits = (task, token, ratings, coins) =>
  trueBits(task, deriveQuery(task, token.serial, [...ratings.keys()].sort((a, b) => a - b)), ratings, coins);
const packed = (bits) => bits.reduce((sum, bit, place) => sum + (bit ? 2 ** place : 0), 0);

/** Clients that are broken on purpose. */
const TWINS = {
  unflipped: (task, token, ratings, coins) => writeReport(token, packed(plainBits(task, token, ratings, coins))),
  silent: (task, token, ratings, coins) => (ratings.size ? answer(task, token, ratings, coins) : writeReport(token, 0)),
  generous: (task, token, ratings, coins) => {
    const threshold = flipThreshold(2n * task.questionEpsilon);
    return writeReport(token, packed(plainBits(task, token, ratings, coins).map((bit) => bit !== coins.chance(threshold))));
  },
  short: (task, token, ratings, coins) => answer(task, token, ratings, { ...coins, chance: (t) => coins.chance(t - 1n) }),
};

const OPERATIONS = {
  block: ({ key, counter, nonce }) => toHex(block(bytes(key), counter, nonce)),
  threshold: ({ epsilon }) => flipThreshold(BigInt(epsilon)).toString(),
  async task({ task: text }) {
    const task = await read(text);
    return {
      id: toHex(task.id),
      key: task.key && toHex(task.key),
      binary: toHex(await sha256(task.toBytes())),
      setSize: task.setSize,
      questionEpsilon: task.questionEpsilon.toString(),
    };
  },
  /** From bytes, as they come from a server. */
  bytes: async ({ data }) => toHex((await read(bytes(data))).id),
  async answer({ task: text, serial, rated, ratings, words, tag }) {
    const task = await read(text);
    const query = deriveQuery(task, serial, rated);
    return {
      id: toHex(task.id),
      stream: toHex(new Stream(task.queryKey, serial % task.pool).take(16)),
      digest: toHex(await sha256(encodeQuery(query))),
      report: toHex(answer(task, tokenFor(task, serial, tag), new Map(ratings), new WrittenCoins(words))),
    };
  },
  async law({ task: text, serial, inputs, twin }) {
    const task = await read(text);
    const respond = twin ? TWINS[twin] : answer;
    const said = (report) => new DataView(report.buffer).getUint32(24, true);
    return inputs.map((ratings) =>
      lawOf((coins) => said(respond(task, tokenFor(task, serial), new Map(ratings), coins))),
    );
  },
  /** Which of these words flip, and what `below` makes of them. */
  coins: ({ words, threshold, n }) => {
    let at = 0;
    const coins = new SecureCoins((array) => array.forEach((_, place) => (array[place] = words[at++])));
    return threshold ? coins.chance(BigInt(threshold)) : [coins.below(n), at];
  },
  /** A sketch that fails, here for want of a coin. */
  async failing({ task: text }) {
    const task = await read(text);
    const coins = { below: () => { throw new Error("no coin"); }, chance: () => true };
    return toHex(answer(task, tokenFor(task, 0), new Map(), coins)).slice(-8);
  },
  token: ({ text }) => Token.parse(text).toString(),
  report: ({ text }) => toHex(readReport(text)),
  model: ({ text }) => new Model(text).items.length,
  recommend: ({ model, ratings, top }) => recommend(new Model(model), ratings, top),
};

export async function run(given) {
  try {
    return { result: await OPERATIONS[given.do](given) };
  } catch (error) {
    if (error instanceof MessageError) return { refused: true };
    return { crashed: String(error?.stack ?? error) };
  }
}

if (typeof process !== "undefined" && process.argv) {
  const { createInterface } = await import("node:readline");
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
  }
}

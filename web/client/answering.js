// From ratings to a report: keep at most the public cap, compute the bits, flip each with a secret coin.

import { flipThreshold } from "./coins.js";
import { writeReport } from "./messages.js";
import { deriveQuery, trueBits } from "./sketches.js";

/** @typedef {import("./sketches.js").Ratings} Ratings */
/** @typedef {import("./sketches.js").Task} Task */
/** @typedef {import("./coins.js").Coins} Coins */

/**
 * One randomised report. Drawing it twice for one task would spend ε twice, so `Diary` keeps the first.
 *
 * For any two `ratings`, any token and any task, the probabilities of any one report are within a factor of e^ε, and there
 * is a report for any `ratings`. It runs without pause, so that a diary can draw and store in one transaction.
 * @param {Task} task one that is open
 * @param {import("./messages.js").Token} token
 * @param {Ratings} ratings
 * @param {Coins} coins
 * @returns {Uint8Array}
 */
export function answer(task, token, ratings, coins) {
  const threshold = flipThreshold(task.questionEpsilon);
  let released = 0;
  oneBitPerQuestion(task, token.serial, usable(ratings, task.items.length), coins).forEach((bit, place) => {
    if (bit !== coins.chance(threshold)) released |= 1 << place;
  });
  return writeReport(token, released >>> 0);
}

/**
 * Exactly one truth value per question, whatever the sketch does with the ratings: an error would depend on them.
 * @param {Task} task
 * @param {number} serial
 * @param {Ratings} ratings
 * @param {Coins} coins
 */
function oneBitPerQuestion(task, serial, ratings, coins) {
  const kept = task.kind.capped ? subsample(ratings, task.rated, coins) : ratings;
  /** @type {boolean[]} */
  let bits = [];
  try {
    const rated = task.publicRated ? [...ratings.keys()].sort((one, other) => one - other) : [];
    bits = trueBits(task, deriveQuery(task, serial, rated), kept, coins);
  } catch {
    // A missing bit counts as false.
  }
  return Array.from({ length: task.questions }, (_, place) => bits[place] === true);
}

/**
 * The ratings that are one: a number that the catalogue has, and true or false. The others are left out.
 * @param {Iterable<[any, any]>} ratings
 * @param {number} items
 * @returns {Ratings}
 */
export function usable(ratings, items) {
  const found = new Map();
  for (const [item, liked] of ratings) {
    if (Number.isInteger(item) && item >= 0 && item < items && typeof liked === "boolean") found.set(item, liked);
  }
  return found;
}

/** @param {Ratings} ratings @param {number} cap @param {Coins} coins @returns {Ratings} */
function subsample(ratings, cap, coins) {
  if (ratings.size <= cap) return ratings;
  const items = [...ratings.keys()].sort((one, other) => one - other);
  for (let place = 0; place < cap; place += 1) {
    const other = place + coins.below(items.length - place);
    [items[place], items[other]] = [items[other], items[place]];
  }
  return new Map(items.slice(0, cap).map((item) => [item, ratings.get(item) === true]));
}

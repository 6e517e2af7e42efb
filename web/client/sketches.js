// Each sketch at home: derive the query from the public stream, and say the true bits it asks for.

import { join, u32 } from "./bytes.js";
import { Stream } from "./stream.js";

/** @typedef {import("./messages.js").Task} Task */
/** @typedef {import("./coins.js").Coins} Coins */
/** @typedef {Map<number, boolean>} Ratings for each rated item's number, whether it was liked */

const SHORT_WORDS_UP_TO = 4096;

/** floor(word * count / 2^bits): exact, as a word has 32 bits and a count at most 17. @param {number} word @param {number} count */
const scaled = (word, count, bits = 32) => Math.floor((word * count) / 2 ** bits);

/** @param {number} one @param {number} other */
const ascending = (one, other) => one - other;

/**
 * The token's query, as lists of item numbers, or for projection as two vectors of bits; empty where there is nothing to ask.
 * `rated`, ascending, matters only where the task treats it as public.
 * @param {Task} task
 * @param {number} serial
 * @param {number[]} rated
 * @returns {(number[] | Uint8Array)[]}
 */
export function deriveQuery(task, serial, rated) {
  const stream = new Stream(task.queryKey, serial % task.pool);
  const size = task.items.length;
  switch (task.sketch) {
    case "maxsense": {
      const width = size <= SHORT_WORDS_UP_TO ? 2 : 4;
      return [stream.words(task.setSize, width).map((word) => scaled(word, size, 8 * width))];
    }
    case "multi-maxsense": {
      const words = stream.words(size);
      const order = Array.from(words.keys()).sort((one, other) => words[one] - words[other] || one - other);
      const cut = (/** @type {number} */ set) => order.slice(set * task.setSize, (set + 1) * task.setSize);
      return Array.from({ length: task.questions }, (_, set) => cut(set).sort(ascending));
    }
    case "pairwise": {
      const choice = task.publicRated ? rated : Array.from({ length: size }, (_, item) => item);
      if (choice.length < 2) return [];
      const [first, second] = stream.words(2);
      const i = scaled(first, choice.length);
      const j = scaled(second, choice.length - 1);
      return [[i, j >= i ? j + 1 : j].sort(ascending).map((place) => choice[place])];
    }
    case "projection": {
      const width = Math.ceil(size / 8);
      return [0, 1].map(() => {
        const signs = stream.take(width);
        signs[width - 1] &= 0xff >> (8 * width - size);
        return signs;
      });
    }
  }
}

/** The query as its canonical bytes. @param {(number[] | Uint8Array)[]} query */
export const encodeQuery = (query) =>
  join(query.map((part) => (part instanceof Uint8Array ? part : join(part.map(u32)))));

/**
 * The true answer to each question: it never leaves the device unflipped.
 * @param {Task} task
 * @param {(number[] | Uint8Array)[]} query
 * @param {Ratings} ratings
 * @param {Coins} coins
 * @returns {boolean[]}
 */
export function trueBits(task, query, ratings, coins) {
  switch (task.sketch) {
    case "maxsense":
    case "multi-maxsense":
      return query.map((items) => items.some((item) => ratings.get(item) === true));
    case "pairwise": {
      if (!query.length) return [coins.below(2) === 1];
      const [first, second] = Array.from(query[0], (item) => ratings.get(item));
      return [first !== undefined && first === second];
    }
    case "projection": {
      const [first, second] = query.map((signs) => leansUp(signs, ratings, coins));
      return [first === second];
    }
  }
}

/** Whether h·x > 0; a fair coin where it is 0. @param {number[] | Uint8Array} signs @param {Ratings} ratings @param {Coins} coins */
function leansUp(signs, ratings, coins) {
  let product = 0;
  for (const [item, liked] of ratings) {
    const plus = ((signs[item >> 3] >> (item & 7)) & 1) === 1;
    product += plus === liked ? 1 : -1;
  }
  return product ? product > 0 : coins.below(2) === 1;
}

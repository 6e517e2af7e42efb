// Recommendations from the published model and one's own ratings: nothing is sent.

import { usable } from "./answering.js";
import { fromHex } from "./bytes.js";
import { parseEpsilon } from "./decimals.js";
import { MOST_TOKENS, expect, expectCatalogue, isCount, isText, readFields, toWhole } from "./messages.js";

const LARGEST_FLOAT = (2 - 2 ** -23) * 2 ** 127;
const LONGEST_NOTE = 10_000;
const PRIOR_WEIGHT = 2; // a cluster's published like rate counts as much as this many of one's own ratings

/** @param {unknown} value */
const isNumber = (value) =>
  typeof value === "bigint"
    ? value <= BigInt(LARGEST_FLOAT) && value >= -BigInt(LARGEST_FLOAT)
    : typeof value === "number" && Math.abs(value) <= LARGEST_FLOAT;

/** The published model: what everyone may know, and all that is needed to recommend at home. */
export class Model {
  /** Read a JSON message; anything but exactly one is a `MessageError`. @param {string | Uint8Array} data */
  constructor(data) {
    const found = readFields(data, "model", {
      task: "text", items: "list", clusters: "list", embedding: "list", popularity: "list",
      reports: "whole", epsilon: "text", public_rated: "flag", notes: "list",
    });
    const count = found.items.length;
    expectCatalogue(found.items);
    expect(isCount(found.reports, 0, MOST_TOKENS), "reports are from 0 to 2^31 - 1");
    expect(found.notes.every((/** @type {unknown} */ note) => isText(note, LONGEST_NOTE)), "a note is no text");
    expect(found.embedding.every(Array.isArray), "the embedding is not a list for each item");
    const widths = new Set(found.embedding.map((/** @type {unknown[]} */ row) => row.length));
    expect(!widths.size || (found.embedding.length === count && widths.size === 1 && !widths.has(0)), "the vectors do not fit");
    expect([0, count].includes(found.popularity.length), "the popularities do not fit");
    expect([...found.embedding, found.popularity].every((row) => row.every(isNumber)), "a number is not finite");

    this.task = fromHex(found.task, 32);
    /** @type {string[]} */ this.items = found.items;
    /** @type {number[]} */ this.clusters = found.clusters.map(toWhole);
    expect(this.clusters.length === count && this.clusters.every((cluster) => isCount(cluster, 0, count - 1)), "the clusters do not fit");
    /** @type {number[][]} */ this.embedding = found.embedding.map((/** @type {any[]} */ row) => row.map(Number));
    /** @type {number[]} */ this.popularity = found.popularity.map(Number);
    /** @type {number} */ this.reports = found.reports;
    this.epsilon = parseEpsilon(found.epsilon);
    /** @type {boolean} */ this.publicRated = found.public_rated;
    /** @type {string[]} */ this.notes = found.notes;
  }
}

/**
 * The unrated items that fit best, best first; without ratings the most popular ones.
 * @param {Model} model
 * @param {Iterable<[number, boolean]>} ratings
 * @param {number} top
 */
export function recommend(model, ratings, top = 10) {
  const liked = usable(ratings, model.items.length);
  const scores = model.embedding.length ? byEmbedding(model, liked) : byCluster(model, liked);
  return Array.from(scores.keys())
    .filter((item) => !liked.has(item))
    .sort((a, b) => scores[b] - scores[a] || (model.popularity[b] ?? 0) - (model.popularity[a] ?? 0) || a - b)
    .slice(0, top)
    .map((item) => ({ item: model.items[item], score: scores[item] }));
}

/** How much each item's vector points along what was liked, and away from what was not. @param {Model} model @param {Map<number, boolean>} liked */
function byEmbedding(model, liked) {
  const taste = model.embedding[0].map(() => 0);
  for (const [item, like] of liked) {
    model.embedding[item].forEach((value, axis) => (taste[axis] += like ? value : -value));
  }
  return model.embedding.map((vector) => vector.reduce((sum, value, axis) => sum + value * taste[axis], 0));
}

/** One's own like rate in each item's cluster, drawn toward everybody's. @param {Model} model @param {Map<number, boolean>} liked */
function byCluster(model, liked) {
  const tallies = new Map(model.clusters.map((cluster) => [cluster, { items: 0, everybody: 0, rated: 0, likes: 0 }]));
  model.clusters.forEach((cluster, item) => {
    const tally = tallies.get(cluster) ?? { items: 0, everybody: 0, rated: 0, likes: 0 };
    tally.items += 1;
    tally.everybody += model.popularity[item] ?? 0.5;
    tally.rated += Number(liked.has(item));
    tally.likes += Number(liked.get(item) === true);
  });
  const rates = new Map(
    Array.from(tallies, ([cluster, { items, everybody, rated, likes }]) => {
      const prior = Math.min(1, Math.max(0, everybody / items));
      return [cluster, (likes + PRIOR_WEIGHT * prior) / (rated + PRIOR_WEIGHT)];
    }),
  );
  return model.clusters.map((cluster) => rates.get(cluster) ?? 0);
}

// Task, token and report: what crosses the trust boundary, read strictly (docs/recommender/wire-format.md).

import { ascii, equal, fromHex, join, labelled, text, toHex, u32, u8 } from "./bytes.js";
import { ONE, parseDecimal, parseEpsilon, writeDecimal } from "./decimals.js";
import { Declined, MessageError } from "./errors.js";
import { parseJson } from "./json.js";

export const MOST_TOKENS = 2 ** 31 - 1;
const MOST_ITEMS = 2 ** 16;
const MOST_QUESTIONS = 32;
const LONGEST_TEXT = 1000;
const SHORT = 8; // bytes of a task's id that go with tokens and reports
const SMALLEST_THETA = ONE / 1_000_000n;

/** What a task for each sketch may say. */
export const SKETCHES = Object.freeze({
  pairwise: { senses: false, several: false, publicRated: true, capped: false },
  maxsense: { senses: true, several: false, publicRated: false, capped: true },
  "multi-maxsense": { senses: true, several: true, publicRated: false, capped: true },
  projection: { senses: false, several: false, publicRated: false, capped: true },
});

/** @param {boolean} sound @param {string} what @returns {asserts sound} */
export function expect(sound, what) {
  if (!sound) throw new MessageError(`The message is not valid: ${what}.`);
}

/**
 * The fields of a JSON message, each present and none besides.
 * @param {string | Uint8Array} data
 * @param {string} kind
 * @param {Record<string, "text" | "whole" | "flag" | "list">} expected
 * @returns {Record<string, any>} whole numbers as Number, or NaN where they are too large for one
 */
export function readFields(data, kind, expected) {
  const found = parseJson(data);
  expect(found instanceof Map && found.get("evenhand") === kind, `expected a JSON object with "evenhand": "${kind}"`);
  expect(found.get("version") === 1n, "it has another version than 1");
  expect(found.size === Object.keys(expected).length + 2, "it has other fields than expected");
  /** @type {Record<string, any>} */
  const fields = {};
  for (const [name, type] of Object.entries(expected)) {
    const value = found.get(name);
    const types = { text: "string", whole: "bigint", flag: "boolean" };
    expect(type === "list" ? Array.isArray(value) : typeof value === types[type], `${name} is not of the expected type`);
    fields[name] = type === "whole" ? toWhole(value) : value;
  }
  return fields;
}

/** @param {unknown} value */
export function toWhole(value) {
  return typeof value === "bigint" && value >= 0n && value <= 2n ** 32n ? Number(value) : NaN;
}

/** @param {unknown} value @param {number} most characters (not UTF-16 units) */
export function isText(value, most) {
  if (typeof value !== "string" || value.length > 2 * most || !value.isWellFormed()) return false;
  return value.length <= most || Array.from(value).length <= most;
}

/** @param {unknown[]} items @returns {asserts items is string[]} */
export function expectCatalogue(items) {
  expect(items.length >= 2 && items.length <= MOST_ITEMS, `a catalogue has 2 to ${MOST_ITEMS} items`);
  expect(items.every((item) => item !== "" && isText(item, LONGEST_TEXT)), "items are texts of 1 to 1000 characters");
  expect(new Set(items).size === items.length, "the catalogue names an item twice");
}

/** @param {number} value @param {number} least @param {number} most */
export const isCount = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;

/** What everyone is asked, and with how much privacy: public, and fixed by its id. */
export class Task {
  /**
   * Read a JSON message; anything but exactly one, such as an altered task, is a `MessageError`.
   * @param {string | Uint8Array} data
   */
  static async fromJson(data) {
    const found = readFields(data, "task", {
      id: "text", sketch: "text", rated: "whole", questions: "whole", tokens: "whole", pool: "whole",
      epsilon: "text", theta: "text", public_rated: "flag", epoch: "text", items: "list", beacon: "text",
    });
    const task = new Task(found);
    task.id = await labelled("task", task.body());
    if (!equal(task.id, fromHex(found.id, 32))) {
      throw new MessageError("The task's content does not match its id: it was altered. Do not answer it.");
    }
    if (task.beacon) task.key = await labelled("query", task.id, task.beacon);
    return Object.freeze(task);
  }

  /** @private @param {Record<string, any>} found */
  constructor(found) {
    const kind = Object.hasOwn(SKETCHES, found.sketch) ? SKETCHES[/** @type {keyof SKETCHES} */ (found.sketch)] : null;
    expect(kind !== null, "its sketch is unknown");
    expectCatalogue(found.items);
    /** @type {readonly string[]} */
    this.items = Object.freeze(found.items);
    this.sketch = /** @type {keyof SKETCHES} */ (found.sketch);
    this.kind = kind;
    this.epsilon = parseEpsilon(found.epsilon);
    this.theta = found.theta === "" ? null : parseDecimal(found.theta);
    /** @type {number} */ this.rated = found.rated;
    /** @type {number} */ this.questions = found.questions;
    /** @type {number} */ this.tokens = found.tokens;
    /** @type {number} */ this.pool = found.pool;
    /** @type {boolean} */ this.publicRated = found.public_rated;
    /** @type {string} */ this.epoch = found.epoch;
    this.beacon = found.beacon === "" ? null : fromHex(found.beacon, 32);
    this.id = new Uint8Array(32);
    /** @type {Uint8Array | null} */ this.key = null;

    expect(isCount(this.rated, 1, this.items.length), "rated is from 1 to the number of items");
    expect(isCount(this.tokens, 1, MOST_TOKENS), "tokens are from 1 to 2^31 - 1");
    expect(isCount(this.pool, 1, this.tokens), "the pool is from 1 to the number of tokens");
    expect(isCount(this.questions, 1, kind.several ? MOST_QUESTIONS : 1), "it asks too many questions");
    expect(!this.publicRated || (kind.publicRated && this.pool === this.tokens), "public_rated is not for such a task");
    expect(isText(this.epoch, LONGEST_TEXT), "the epoch has at most 1000 characters");
    expect((this.theta !== null) === kind.senses, "theta is for sketches that sense, and only for them");
    if (this.theta !== null) {
      const most = BigInt(this.rated) * ONE;
      expect(this.theta >= SMALLEST_THETA && this.theta <= most, "theta is from 0.000001 to rated");
      expect(this.questions * this.setSize <= this.items.length, "its sets need more items than there are");
    }
  }

  /** How many items a sensing query draws: Nθ/w, rounded half up, at least 1. */
  get setSize() {
    const cap = BigInt(this.rated) * ONE;
    const size = (2n * BigInt(this.items.length) * (this.theta ?? 0n) + cap) / (2n * cap);
    return Math.max(1, Number(size));
  }

  /** The ε of each of the answer's bits, in units of 10^-18, rounded down. */
  get questionEpsilon() {
    return this.epsilon / (BigInt(this.questions) * (ONE / 10n ** 18n));
  }

  get shortId() {
    return this.id.subarray(0, SHORT);
  }

  /** The public key of the stream that all queries come from. */
  get queryKey() {
    if (!this.key) throw new Declined("The task is not open yet: its beacon is published once the tokens are out. Wait for it.");
    return this.key;
  }

  body() {
    const theta = this.theta === null ? "" : writeDecimal(this.theta);
    return join([
      ...[this.sketch, writeDecimal(this.epsilon), theta].map(text),
      ...[this.rated, this.questions, this.tokens, this.pool].map(u32),
      u8(Number(this.publicRated)), text(this.epoch), u32(this.items.length), ...this.items.map(text),
    ]);
  }

  toBytes() {
    const beacon = this.beacon ? [u8(1), this.beacon] : [u8(0)];
    return join([ascii("EHT1"), this.id, this.body(), ...beacon]);
  }
}

/** The right to answer a task once: a serial number, and the server's tag that proves it was issued. */
export class Token {
  /** @param {Uint8Array} task @param {number} serial @param {Uint8Array} tag */
  constructor(task, serial, tag) {
    expect(isCount(serial, 0, MOST_TOKENS - 1), "the serial is from 0 to 2^31 - 2");
    this.task = task;
    this.serial = serial;
    this.tag = tag;
  }

  /** Read the text form TASK-SERIAL-TAG. @param {string} given */
  static parse(given) {
    const found = /^([^-]*)-([0-9]{1,10})-([^-]*)$/.exec(given.trim());
    if (!found) throw new MessageError("The token is not of the form TASK-SERIAL-TAG: copy the whole line you were given.");
    return new Token(fromHex(found[1], SHORT), Number(found[2]), fromHex(found[3], SHORT));
  }

  toString() {
    return `${toHex(this.task)}-${this.serial}-${toHex(this.tag)}`;
  }
}

/**
 * A report: 28 bytes, of which the last four depend on ratings.
 * @param {Token} token
 * @param {number} answer
 */
export const writeReport = (token, answer) =>
  join([ascii("EHR1"), token.task, u32(token.serial), token.tag, u32(answer)]);

/**
 * Read a JSON report as its bytes; anything but exactly one is a `MessageError`.
 * @param {string | Uint8Array} data
 */
export function readReport(data) {
  const found = readFields(data, "report", { task: "text", serial: "whole", tag: "text", answer: "whole" });
  expect(isCount(found.answer, 0, 2 ** 32 - 1), "the answer has at most 32 bits");
  return writeReport(new Token(fromHex(found.task, SHORT), found.serial, fromHex(found.tag, SHORT)), found.answer);
}

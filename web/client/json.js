// JSON read strictly. JSON.parse takes a field that comes twice, and can't tell 1 from 1.0 nor one large number from the next.

import { MessageError } from "./errors.js";

const DEEPEST = 32; // no message is nested deeper than 3
const LONGEST_WHOLE = 4300;
const ESCAPES = new Map(Object.entries({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }));
const WORDS = new Map(/** @type {[string, boolean | null][]} */ ([["true", true], ["false", false], ["null", null]]));

/** @typedef {null | boolean | string | number | bigint | any[] | Map<string, any>} Json */

/**
 * Whole numbers become BigInt, other numbers Number, objects Map.
 * @param {string | Uint8Array} data text, or bytes that are UTF-8 without a byte order mark
 * @returns {Json}
 */
export function parseJson(data) {
  return new Parser(typeof data === "string" ? data : decode(data)).whole();
}

/** @param {Uint8Array} bytes */
function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MessageError("The message is not UTF-8.");
  }
}

class Parser {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  whole() {
    const value = this.value(0);
    this.space();
    if (this.at !== this.text.length) this.fail();
    return value;
  }

  /** @returns {never} */
  fail() {
    throw new MessageError("The message is not JSON whose fields come once each: it is damaged.");
  }

  /** @param {RegExp} pattern sticky */
  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  space() {
    this.match(/[ \t\n\r]*/y);
  }

  /** @param {string} character */
  next(character) {
    this.space();
    const there = this.text[this.at] === character;
    if (there) this.at += 1;
    return there;
  }

  /** @param {number} depth @returns {Json} */
  value(depth) {
    if (depth > DEEPEST) this.fail();
    if (this.next("{")) return this.object(depth);
    if (this.next("[")) return this.list(depth);
    if (this.next('"')) return this.string();
    const word = this.match(/true|false|null/y);
    if (word) return /** @type {Json} */ (WORDS.get(word[0]));
    const found = this.match(/(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?/y);
    if (!found) this.fail();
    if (found[2] || found[3]) return Number(found[0]);
    if (found[1].length > LONGEST_WHOLE) this.fail();
    return BigInt(found[1]);
  }

  /** @param {number} depth */
  object(depth) {
    const fields = new Map();
    if (this.next("}")) return fields;
    do {
      if (!this.next('"')) this.fail();
      const name = this.string();
      if (fields.has(name) || !this.next(":")) this.fail();
      fields.set(name, this.value(depth + 1));
    } while (this.next(","));
    if (!this.next("}")) this.fail();
    return fields;
  }

  /** @param {number} depth */
  list(depth) {
    /** @type {Json[]} */
    const values = [];
    if (this.next("]")) return values;
    do values.push(this.value(depth + 1));
    while (this.next(","));
    if (!this.next("]")) this.fail();
    return values;
  }

  string() {
    let text = "";
    for (;;) {
      text += this.match(/[^"\\\u0000-\u001f]*/y)?.[0] ?? "";
      if (this.text[this.at] === '"') {
        this.at += 1;
        return text;
      }
      const escape = this.match(/\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/y);
      if (!escape) this.fail();
      text += escape[1] ? String.fromCharCode(parseInt(escape[1], 16)) : ESCAPES.get(escape[2]);
    }
  }
}

// Bytes as the wire format writes them: little endian, texts after their length, and SHA-256 of a labelled message.

import { MessageError } from "./errors.js";

const UTF8 = new TextEncoder();
const PREFIX = "evenhand/recommender/1/";

/** @param {number} value */
export const u8 = (value) => Uint8Array.of(value);

/** @param {number} value */
export function u32(value) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** @param {string} value */
export function text(value) {
  const bytes = UTF8.encode(value);
  return join([u32(bytes.length), bytes]);
}

/** @param {string} value */
export const ascii = (value) => UTF8.encode(value);

/** @param {Uint8Array[]} parts a list and not arguments, of which there can't be as many as items */
export function join(parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {Uint8Array} bytes */
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * Hexadecimal digits for exactly so many bytes, and nothing between them.
 * @param {unknown} value
 * @param {number} size
 */
export function fromHex(value, size) {
  if (typeof value !== "string" || value.length !== 2 * size || !/^[0-9a-fA-F]*$/.test(value)) {
    throw new MessageError(`A value is not ${2 * size} hexadecimal digits: the message is damaged.`);
  }
  return Uint8Array.from({ length: size }, (_, place) => parseInt(value.slice(2 * place, 2 * place + 2), 16));
}

/** @param {Uint8Array} one @param {Uint8Array} other */
export const equal = (one, other) => one.length === other.length && one.every((byte, place) => byte === other[place]);

/** @param {Uint8Array} bytes */
export const sha256 = async (bytes) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes)));

/**
 * The hash that the wire format writes as SHA-256("evenhand/recommender/1/LABEL" 0x00 ...).
 * @param {string} label
 * @param {...Uint8Array} parts
 */
export const labelled = (label, ...parts) => sha256(join([ascii(`${PREFIX}${label}\0`), ...parts]));

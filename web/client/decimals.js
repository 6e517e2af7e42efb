// ε and θ as exact decimals. A decimal is a BigInt that counts units of 10^-64, so that sums and comparisons are exact.

import { MessageError } from "./errors.js";

const PLACES = 64;
const MOST_DIGITS = 40;
const SPELLING = /^(0|[1-9][0-9]{0,19})(?:\.([0-9]{0,63}[1-9]))?$/;

export const ONE = 10n ** BigInt(PLACES);
const SMALLEST_EPSILON = ONE / 10n ** 9n;
const LARGEST_EPSILON = 10_000n * ONE;

/**
 * Read a decimal in its only spelling; anything else is a `MessageError`.
 * @param {unknown} text
 * @returns {bigint}
 */
export function parseDecimal(text) {
  const found = typeof text === "string" ? SPELLING.exec(text) : null;
  if (!found) throw new MessageError("A number is not a plain decimal such as 0.5, without exponent or trailing zeros.");
  const [, whole, fraction = ""] = found;
  if ((whole + fraction).replace(/^0+/, "").length > MOST_DIGITS) {
    throw new MessageError(`A number has more than ${MOST_DIGITS} digits.`);
  }
  return BigInt(whole + fraction.padEnd(PLACES, "0"));
}

/**
 * Read an ε: a decimal from 10^-9 to 10000.
 * @param {unknown} text
 */
export function parseEpsilon(text) {
  const value = parseDecimal(text);
  if (value < SMALLEST_EPSILON || value > LARGEST_EPSILON) {
    throw new MessageError("An ε is out of range: expected 0.000000001 to 10000.");
  }
  return value;
}

/**
 * The only spelling of a decimal.
 * @param {bigint} value
 */
export function writeDecimal(value) {
  const digits = value.toString().padStart(PLACES + 1, "0");
  const fraction = digits.slice(-PLACES).replace(/0+$/, "");
  return digits.slice(0, -PLACES) + (fraction && `.${fraction}`);
}

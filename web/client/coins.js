// Secret coins: the only randomness that privacy rests on.

const PRECISION = 256n; // bits after the point while e^ε is computed
const HALVINGS = 7n;
const CERTAIN = 45n * 10n ** 18n; // e^45 > 2^64

/**
 * The least T with T / 2^64 >= 1 / (e^ε + 1): how often a bit is flipped, rounded toward more flipping.
 *
 * Every step below rounds a positive number down, so `power` is at most e^ε and T is never too small, whatever the
 * precision: (1 - T/2^64) / (T/2^64) <= e^ε exactly. `power` is within a factor 1 - 2^-240 of e^ε.
 * @param {bigint} epsilon in units of 10^-18
 */
export function flipThreshold(epsilon) {
  if (epsilon >= CERTAIN) return 1n;
  const x = (epsilon << PRECISION) / (10n ** 18n << HALVINGS);
  let term = 1n << PRECISION;
  let power = term;
  for (let k = 1n; term > 0n; k += 1n) {
    term = ((term * x) >> PRECISION) / k;
    power += term;
  }
  for (let k = 0n; k < HALVINGS; k += 1n) power = (power * power) >> PRECISION;
  const sum = power + (1n << PRECISION);
  return ((1n << (64n + PRECISION)) + sum - 1n) / sum;
}

/**
 * @typedef {object} Coins
 * @property {(n: number) => number} below a whole number from 0 to n-1, each equally likely
 * @property {(threshold: bigint) => boolean} chance true with probability threshold / 2^64
 */

/** Coins from the browser's secure source. @implements {Coins} */
export class SecureCoins {
  /** @param {(words: Uint32Array) => unknown} fill fills an array with secret random words; tests give their own */
  constructor(fill = (words) => crypto.getRandomValues(words)) {
    /** @param {number} count */
    this.words = (count) => {
      const words = new Uint32Array(count);
      fill(words);
      return words;
    };
  }

  /** @param {number} n */
  below(n) {
    const fair = 2 ** 32 - (2 ** 32 % n); // words from here on would favour some numbers
    for (;;) {
      const [word] = this.words(1);
      if (word < fair) return word % n;
    }
  }

  /** @param {bigint} threshold */
  chance(threshold) {
    const [low, high] = this.words(2);
    return ((BigInt(high) << 32n) | BigInt(low)) < threshold;
  }
}

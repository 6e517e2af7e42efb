// The public stream that a query is read from: the ChaCha20 key stream (RFC 8439) with the query's number in the nonce.

const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]; // "expand 32-byte k"
const QUERY = 1; // the nonce's second word: what the stream is for

/** @param {Uint32Array} x @param {number} a @param {number} b @param {number} c @param {number} d */
function quarter(x, a, b, c, d) {
  let mixed;
  x[a] += x[b]; mixed = x[d] ^ x[a]; x[d] = (mixed << 16) | (mixed >>> 16);
  x[c] += x[d]; mixed = x[b] ^ x[c]; x[b] = (mixed << 12) | (mixed >>> 20);
  x[a] += x[b]; mixed = x[d] ^ x[a]; x[d] = (mixed << 8) | (mixed >>> 24);
  x[c] += x[d]; mixed = x[b] ^ x[c]; x[b] = (mixed << 7) | (mixed >>> 25);
}

/**
 * One 64-byte block of the key stream: RFC 8439, section 2.3.
 * @param {Uint8Array} key 32 bytes
 * @param {number} counter
 * @param {number[]} nonce three words
 */
export function block(key, counter, nonce) {
  const view = new DataView(key.buffer, key.byteOffset, 32);
  const words = Array.from({ length: 8 }, (_, place) => view.getUint32(4 * place, true));
  const start = Uint32Array.of(...CONSTANTS, ...words, counter, ...nonce);
  const x = start.slice();
  for (let round = 0; round < 10; round += 1) {
    for (let column = 0; column < 4; column += 1) quarter(x, column, column + 4, column + 8, column + 12);
    for (let row = 0; row < 4; row += 1) quarter(x, row, 4 + ((row + 1) & 3), 8 + ((row + 2) & 3), 12 + ((row + 3) & 3));
  }
  const bytes = new DataView(new ArrayBuffer(64));
  start.forEach((word, place) => bytes.setUint32(4 * place, word + x[place], true));
  return new Uint8Array(bytes.buffer);
}

/** The random bytes of one query, read from front to back. */
export class Stream {
  /** @param {Uint8Array} key @param {number} number */
  constructor(key, number) {
    this.key = key;
    this.nonce = [number, QUERY, 0];
    this.counter = 0;
    this.left = new Uint8Array(0);
  }

  /** The next `size` bytes. @param {number} size */
  take(size) {
    const taken = new Uint8Array(size);
    let at = 0;
    while (at < size) {
      if (!this.left.length) {
        this.left = block(this.key, this.counter, this.nonce);
        this.counter += 1;
      }
      const piece = this.left.subarray(0, size - at);
      taken.set(piece, at);
      this.left = this.left.subarray(piece.length);
      at += piece.length;
    }
    return taken;
  }

  /** The next `count` little-endian words of `size` bytes, 2 or 4. @param {number} count @param {2 | 4} size */
  words(count, size = 4) {
    const view = new DataView(this.take(count * size).buffer);
    return Array.from({ length: count }, (_, place) =>
      size === 2 ? view.getUint16(2 * place, true) : view.getUint32(4 * place, true),
    );
  }
}

// The diary: what this person has answered, what it has cost them, and what they are willing to spend, in IndexedDB.

import { answer } from "./answering.js";
import { equal, toHex } from "./bytes.js";
import { SecureCoins } from "./coins.js";
import { parseEpsilon, writeDecimal } from "./decimals.js";
import { Declined, DiaryError } from "./errors.js";

/** @typedef {import("./messages.js").Task} Task */
/** @typedef {import("./messages.js").Token} Token */
/** @typedef {{ ceiling: string, lifetime: string, publicRated: boolean | null, begun: string }} Limits */
/** @typedef {{ task: string, epsilon: string, when: string, report: Uint8Array | null, sent: boolean }} Entry */

const NAME = "evenhand-recommender"; // one per origin and profile, whatever the page's address
const LOCK = "evenhand-recommender/diary";
const LIMITS = "limits";
const REPORT_SIZE = 28;
const STORES = ["diary", "answers", "ratings", "papers"];

const GONE = "There is no diary in this browser, or it was cleared. Begin one first.";
const UNUSABLE = "The diary can't be read or written: it is damaged, or this browser can't keep one.";

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @returns {Promise<IDBDatabase>} */
function open() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => STORES.forEach((store) => request.result.createObjectStore(store));
  return done(request);
}

/**
 * One transaction, alone: two tabs can neither overspend nor draw two coins. `work` may await nothing but requests of the
 * transaction. It is on disk when this returns, also if the power fails the moment after.
 * @template T
 * @param {(stores: Record<string, IDBObjectStore>) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function transact(work) {
  const database = await open().catch(() => {
    throw new DiaryError(UNUSABLE);
  });
  try {
    const transaction = database.transaction(STORES, "readwrite", { durability: "strict" });
    if (transaction.durability !== "strict") throw new DiaryError("This browser can't promise that what it stored is on disk.");
    const finished = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    finished.catch(() => {}); // awaited below unless `work` failed first
    try {
      const result = await work(Object.fromEntries(STORES.map((name) => [name, transaction.objectStore(name)])));
      await finished;
      return result;
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // it is over already
      }
      throw error;
    }
  } catch (error) {
    throw error instanceof DOMException ? new DiaryError(UNUSABLE) : error;
  } finally {
    database.close();
  }
}

/**
 * A second tab waits. The transactions above would do; the lock also keeps debit and answer of one task together.
 * @template T @param {() => Promise<T>} work @returns {Promise<T>}
 */
function alone(work) {
  if (!navigator.locks) throw new DiaryError("This browser has no locks between tabs.");
  return /** @type {Promise<T>} */ (navigator.locks.request(LOCK, work));
}

/** Chromium never evicts what an extension with this permission keeps; our manifest has it, and keeps out of private windows. */
const neverEvicted = () =>
  location.protocol === "chrome-extension:" &&
  /** @type {any} */ (globalThis).chrome?.runtime?.getManifest?.().permissions?.includes("unlimitedStorage") === true;

/** Refuse unless the browser has promised not to clear the diary by itself, as it does in private windows. */
async function requirePersistence() {
  if (globalThis.top !== globalThis.self) {
    // Browsers give a page in a frame another storage for each site around it: each would be a new diary.
    throw new DiaryError("This page is shown inside another page. Open it in a tab of its own; nothing was answered or spent.");
  }
  if (neverEvicted()) return;
  const storage = navigator.storage;
  if (!storage?.persist || !((await storage.persisted()) || (await storage.persist()))) {
    throw new DiaryError(
      "This browser has not granted persistent storage, so it might forget what you have spent. Nothing was answered or " +
        "spent. Private windows never grant it; elsewhere it helps to bookmark or install this page, or to use the extension.",
    );
  }
}

/** @param {Limits | undefined} kept */
function readLimits(kept) {
  if (!kept) throw new DiaryError(GONE);
  return { ceiling: amount(kept.ceiling), lifetime: amount(kept.lifetime), publicRated: kept.publicRated === true };
}

/** @param {unknown} kept */
function amount(kept) {
  try {
    return parseEpsilon(kept);
  } catch {
    throw new DiaryError(UNUSABLE); // not guessed
  }
}

/** @param {IDBObjectStore} answers @returns {Promise<bigint>} */
const spentIn = async (answers) =>
  (await done(answers.getAll())).reduce((sum, entry) => sum + amount(entry?.epsilon), 0n);

/**
 * Answers each task once, ever, and stays within a ceiling per task and a lifetime budget.
 *
 * Everything this diary ever lets out is `lifetime`-private. The cost is on disk before a coin is tossed, and the answer
 * before it is returned, so that no crash is followed by a fresh coin; a retry returns the same bytes. Whether it answers depends
 * on the task, the limits and the choice, not on the ratings. The lifetime holds per diary: another browser, profile or
 * origin, or cleared site data, is a new one.
 */
export class Diary {
  /** @param {import("./coins.js").Coins} coins tests give their own; nothing else does */
  constructor(coins = new SecureCoins()) {
    this.coins = coins;
  }

  /**
   * Begin the diary with what the person decided. It is decided once: later only `publicRated` may be, if it was left open.
   * @param {string} ceiling the largest ε accepted from one task
   * @param {string} lifetime the largest sum of ε over all tasks
   * @param {boolean | null} publicRated whether it may be public which items this person rated
   */
  async begin(ceiling, lifetime, publicRated = null) {
    const wanted = [ceiling, lifetime].map((given) => {
      try {
        return writeDecimal(parseEpsilon(given));
      } catch {
        throw new Declined(`“${given}” is no limit: expected a number such as 0.5 or 4, from 0.000000001 to 10000.`);
      }
    });
    if (![true, false, null].includes(publicRated)) throw new Declined("Whether rated items may be public is yes, no or not said.");
    await requirePersistence();
    await alone(() =>
      transact(async ({ diary }) => {
        if (await done(diary.get(LIMITS))) throw new Declined("There is a diary already: its limits stay what they are.");
        diary.add({ ceiling: wanted[0], lifetime: wanted[1], publicRated, begun: today() }, LIMITS);
      }),
    );
  }

  /** Decide whether rated items may be public: once, for all tasks. @param {boolean} publicRated */
  async decidePublicRated(publicRated) {
    await alone(() =>
      transact(async ({ diary }) => {
        const kept = await done(diary.get(LIMITS));
        readLimits(kept);
        if (kept.publicRated !== null && kept.publicRated !== publicRated) throw new Declined("This was decided earlier, and it is decided once.");
        diary.put({ ...kept, publicRated: publicRated === true }, LIMITS);
      }),
    );
  }

  /** What the person may look at: limits, sum, entries; null while there is no diary. */
  async look() {
    return transact(async ({ diary, answers }) => {
      const kept = /** @type {Limits | undefined} */ (await done(diary.get(LIMITS)));
      if (!kept) return null;
      readLimits(kept);
      const entries = /** @type {Entry[]} */ (await done(answers.getAll()));
      return { ...kept, spent: writeDecimal(await spentIn(answers)), entries };
    });
  }

  /**
   * Why this task would be declined, or null: for the person to see before they press the button. Nothing is spent.
   * @param {Task} task
   */
  async objection(task) {
    try {
      await transact((stores) => mayAnswer(stores, task));
      return null;
    } catch (error) {
      if (error instanceof Declined) return error.message;
      throw error;
    }
  }

  /**
   * The report for this task: drawn and remembered the first time, and the same ever after.
   * @param {Task} task
   * @param {Token} token
   * @param {() => Promise<Map<number, boolean>>} readRatings called once the cost is on disk
   * @returns {Promise<Uint8Array>}
   */
  async answer(task, token, readRatings) {
    if (!equal(token.task, task.shortId)) throw new Declined("The token is for another task: use the task that it came with.");
    if (token.serial >= task.tokens) throw new Declined("The token's serial is beyond the task's tokens: it is damaged.");
    task.queryKey; // refuses a task whose beacon is not out yet, before anything is spent
    await requirePersistence();
    const id = toHex(task.id);
    return alone(async () => {
      await transact(async (stores) => {
        if (await mayAnswer(stores, task)) return;
        const epsilon = writeDecimal(task.epsilon);
        stores.answers.add({ task: id, epsilon, when: today(), report: null, sent: false }, id);
      });
      const ratings = await readRatings().catch(() => new Map());
      return transact(async ({ answers }) => {
        const entry = /** @type {Entry | undefined} */ (await done(answers.get(id)));
        if (!entry) throw new DiaryError(GONE);
        if (!entry.report) {
          entry.report = answer(task, token, ratings, this.coins);
          answers.put(entry, id);
        }
        if (!(entry.report instanceof Uint8Array && entry.report.length === REPORT_SIZE)) throw new DiaryError(UNUSABLE);
        return entry.report;
      });
    });
  }

  /** Note that the server has the report. @param {Task} task */
  async noteSent(task) {
    await transact(async ({ answers }) => {
      const entry = await done(answers.get(toHex(task.id)));
      if (entry) answers.put({ ...entry, sent: true }, entry.task);
    });
  }

  /** Ratings by the items' names. @returns {Promise<Map<string, boolean>>} */
  async ratings() {
    return transact(async ({ ratings }) => {
      const [names, opinions] = await Promise.all([done(ratings.getAllKeys()), done(ratings.getAll())]);
      return new Map(names.map((name, place) => [String(name), opinions[place]]));
    });
  }

  /** @param {string} item @param {boolean | null} liked null takes the rating back */
  async rate(item, liked) {
    await transact(async ({ ratings }) => void (liked === null ? ratings.delete(item) : ratings.put(liked, item)));
  }

  /** Public messages kept for later, such as the task and the model. @param {string} name */
  async paper(name) {
    return transact(async ({ papers }) => done(papers.get(name)));
  }

  /** @param {string} name @param {unknown} content */
  async keep(name, content) {
    await transact(async ({ papers }) => void papers.put(content, name));
  }
}

/**
 * Whether the task was answered or paid for already; declines it where it may not be.
 * @param {Record<string, IDBObjectStore>} stores
 * @param {Task} task
 */
async function mayAnswer({ diary, answers }, task) {
  const limits = readLimits(await done(diary.get(LIMITS)));
  if (await done(answers.getKey(toHex(task.id)))) return true;
  const asked = `The task asks for ε = ${writeDecimal(task.epsilon)}`;
  if (/; side [0-9]{1,3} of model [0-9a-f]{32}/.test(task.epoch)) {
    throw new Declined("The task is a second round, which needs the model of the first; this page can't answer it. Nothing was answered or spent.");
  }
  if (task.publicRated && !limits.publicRated) {
    throw new Declined(
      "The task treats as public which items you rated, and your diary does not say that they may be. Nothing was answered " +
        "or spent. That is for you to decide, once and for all tasks, and not for a task.",
    );
  }
  if (task.epsilon > limits.ceiling) {
    throw new Declined(`${asked}, above your ceiling of ${writeDecimal(limits.ceiling)} per task. Nothing was answered or spent.`);
  }
  const spent = await spentIn(answers);
  if (spent + task.epsilon > limits.lifetime) {
    throw new Declined(
      `${asked}, but you have spent ${writeDecimal(spent)} of your lifetime budget of ${writeDecimal(limits.lifetime)}. ` +
        "Nothing was answered or spent.",
    );
  }
  return false;
}

const today = () => new Date().toISOString().slice(0, 10);

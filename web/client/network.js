// All that this client says to a campaign's server (docs/recommender/http.md). Nothing else here calls fetch.

import { ServerError } from "./errors.js";

const LARGEST = 64 * 2 ** 20;
const PATIENCE = 30_000;
const LOCAL = ["localhost", "127.0.0.1", "[::1]"];

/** @typedef {{ when: string, method: string, url: string, body: Uint8Array | null }} Sent */

/** What left this page since it was opened, for the person to see. @type {Sent[]} */
export const sent = [];

/**
 * The address of a campaign, as given by a person or an invitation, ending in a slash.
 * @param {string} given
 */
export function campaignAddress(given) {
  const url = URL.canParse(given.trim()) ? new URL(given.trim()) : null;
  const safe = url?.protocol === "https:" || (url?.protocol === "http:" && LOCAL.includes(url.hostname));
  if (!url || !safe || url.username || url.password || url.search || url.hash) {
    throw new ServerError("The campaign's address must begin with https:// and have neither user, query nor fragment.");
  }
  return url.href.endsWith("/") ? url.href : `${url.href}/`;
}

/**
 * @param {string} url
 * @param {Uint8Array | null} body
 */
async function request(url, body = null) {
  sent.push({ when: new Date().toISOString(), method: body ? "POST" : "GET", url, body });
  try {
    return await fetch(url, {
      method: body ? "POST" : "GET",
      body: /** @type {BodyInit | null} */ (body),
      mode: "cors",
      credentials: "omit", // no cookies, and no Clear-Site-Data
      referrerPolicy: "no-referrer",
      redirect: "error",
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new ServerError("The campaign's server can't be reached. Try again later; what you send will be the same bytes.");
  }
}

/** @param {Response} response */
async function readBody(response) {
  const body = await response.arrayBuffer().catch(() => null);
  if (!body || body.byteLength > LARGEST) throw new ServerError("The server's answer is cut short or too large.");
  return new Uint8Array(body);
}

/** The task, as the bytes of its JSON message. @param {string} campaign */
export async function fetchTask(campaign) {
  const response = await request(`${campaign}task`);
  if (!response.ok) throw new ServerError(`The server has no task here (status ${response.status}).`);
  return readBody(response);
}

/** The published model as the bytes of its JSON message, or null while there is none. @param {string} campaign */
export async function fetchModel(campaign) {
  const response = await request(`${campaign}model`);
  if (response.status === 404) return null;
  if (!response.ok) throw new ServerError(`The server has no model here (status ${response.status}).`);
  return readBody(response);
}

/** Send a report: 28 bytes and no header of our own, so that the browser asks nothing beforehand. @param {string} campaign @param {Uint8Array} report */
export async function sendReport(campaign, report) {
  const response = await request(`${campaign}report`, report);
  if (response.ok) return;
  const reasons = new Map([
    [400, "it could not read the report"],
    [403, "it did not issue this token"],
    [409, "another report came with this token before"],
    [410, "the campaign is over"],
  ]);
  throw new ServerError(`The server did not take the report: ${reasons.get(response.status) ?? `status ${response.status}`}.`);
}

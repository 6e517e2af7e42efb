// The page: rate films at home, see what would be sent, send it, and get recommendations without sending anything.

import { toHex } from "./client/bytes.js";
import { Diary } from "./client/diary.js";
import { parseEpsilon } from "./client/decimals.js";
import { Declined, DiaryError, MessageError, ServerError } from "./client/errors.js";
import { Task, Token } from "./client/messages.js";
import { campaignAddress, fetchModel, fetchTask, sendReport, sent } from "./client/network.js";
import { Model, recommend } from "./client/recommending.js";
import { byId, element, say, show } from "./page/dom.js";
import { answered, odds, offer } from "./page/words.js";

const SHOWN = 200; // films listed at once; the others are found by typing
const diary = new Diary();
// A browser gives a page so much storage and no more, and the diary is in it: what is published can be fetched again.
const LARGEST_KEPT = 4 * 2 ** 20;
const isHosted = ["https:", "http:"].includes(location.protocol);

/** @type {{ address: string, token: string, task: Task | null, model: Model | null, ratings: Map<string, boolean> }} */
const state = { address: "", token: "", task: null, model: null, ratings: new Map() };

/** @param {string} text @param {boolean} wrong */
function tell(text, wrong = false) {
  say("status", wrong ? "" : text);
  say("problem", wrong ? text : "");
  show("problem", wrong);
}

/** Runs what a button does; errors of ours are shown, others are defects and go to the console too. @param {() => Promise<string | void>} work */
async function act(work) {
  tell("");
  try {
    tell((await work()) ?? "");
  } catch (error) {
    const known = [Declined, DiaryError, MessageError, ServerError].some((kind) => error instanceof kind);
    tell(known ? /** @type {Error} */ (error).message : "Something went wrong in this page. Nothing was sent.", true);
    if (!known) console.error(error);
  }
  await refresh();
}

/** Another tab may have changed the diary, and a browser may have lost it. */
async function refresh() {
  try {
    await render();
  } catch (error) {
    if (!(error instanceof DiaryError)) throw error;
    tell(error.message, true);
  }
}

/** The person's ratings by the numbers of a catalogue. @param {readonly string[]} items */
async function numbered(items) {
  const ratings = await diary.ratings();
  /** @type {Map<number, boolean>} */
  const found = new Map();
  items.forEach((item, number) => {
    const liked = ratings.get(item);
    if (liked !== undefined) found.set(number, liked);
  });
  return found;
}

async function begin() {
  const chosen = new FormData(byId("begin-form")).get("public");
  await diary.begin(byId("ceiling").value.trim(), byId("lifetime").value.trim(), chosen ? chosen === "yes" : null);
  return "Your diary is begun.";
}

async function lookAtCampaign() {
  const address = campaignAddress(byId("address").value);
  const token = byId("token").value.trim();
  if (token) Token.parse(token);
  const text = await fetchTask(address);
  const task = await Task.fromJson(text);
  await diary.keep("campaign", { address, token, task: text });
  Object.assign(state, { address, token, task, model: null });
  await diary.keep("model", null);
  listFilms();
}

async function answerAndSend() {
  const { task, address } = state;
  if (!task) return;
  const token = Token.parse(state.token);
  const report = await diary.answer(task, token, () => numbered(task.items));
  await sendReport(address, report);
  await diary.noteSent(task);
  return "Sent. Your answer is in your diary; sending it again would send the same bytes.";
}

async function lookForModel() {
  const text = await fetchModel(state.address);
  if (!text) return "The campaign has not published its model yet. Come back later.";
  const model = new Model(text);
  if (!state.task || toHex(model.task) !== toHex(state.task.id)) throw new MessageError("The model is of another campaign.");
  await diary.keep("model", text.length <= LARGEST_KEPT ? text : null);
  state.model = model;
}

/** @param {string} item @param {boolean} liked */
async function toggle(item, liked) {
  const opinion = state.ratings.get(item) === liked ? null : liked;
  await diary.rate(item, opinion);
  if (opinion === null) state.ratings.delete(item);
  else state.ratings.set(item, opinion);
}

/** @param {string} item */
function filmRow(item) {
  const buttons = [true, false].map((liked) => {
    const word = liked ? "Like" : "Dislike";
    const button = element("button", { type: "button", class: word.toLowerCase(), "aria-label": `${word}: ${item}` }, word);
    button.addEventListener("click", () => act(async () => toggle(item, liked).then(press)));
    return button;
  });
  const press = () =>
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(state.ratings.get(item) === (place === 0))));
  press();
  return element("li", {}, element("span", {}, item), ...buttons);
}

function listFilms() {
  const wanted = byId("find").value.trim().toLowerCase();
  const found = (state.task?.items ?? []).filter((item) => item.toLowerCase().includes(wanted));
  byId("films").replaceChildren(...found.slice(0, SHOWN).map(filmRow));
  const hidden = found.length - SHOWN;
  say("more", !found.length ? "No film has such a name." : hidden > 0 ? `${hidden} more: type a part of the name.` : "");
}

/** @typedef {NonNullable<Awaited<ReturnType<Diary["look"]>>>} Kept */

/** @param {Kept} kept */
function renderDiary(kept) {
  say("spent-words", `Spent: ε = ${kept.spent} of your lifetime’s ${kept.lifetime}`);
  byId("spent").max = Number(kept.lifetime);
  byId("spent").value = Number(kept.spent);
  const rated = kept.publicRated === null ? "not decided, which counts as no" : kept.publicRated ? "yes" : "no";
  say(
    "limits",
    `Begun ${kept.begun}. At most ε = ${kept.ceiling} per campaign. Rated films may be public: ${rated}. The lifetime holds for this ` +
      "diary: another browser or profile, or cleared site data, would begin a new one and spend again.",
  );
  show("public-later", kept.publicRated === null);
}

/** @param {Kept} kept */
async function renderOffer(kept) {
  const { task } = state;
  show("rate", Boolean(task));
  show("send", Boolean(task));
  show("recommended", Boolean(task));
  if (!task) return;
  const count = task.items.filter((item) => state.ratings.has(item)).length;
  say("rate-words", `${task.items.length} films, ${count} rated. Ratings are kept in this browser and are never sent.`);
  say("campaign-words", `Campaign ${toHex(task.shortId)}${task.epoch && ` (${task.epoch})`}: compare this number with others who take part.`);
  byId("offer").replaceChildren(...offer(task, kept).flatMap(([term, words]) => [element("dt", {}, term), element("dd", {}, words)]));

  const entry = kept.entries.find((one) => one.task === toHex(task.id));
  const objection = !task.beacon
    ? "This campaign is not open yet: its lottery is drawn once the tokens are out. Look again later."
    : !state.token
      ? "You need a token to answer."
      : await diary.objection(task);
  show("objection", objection !== null && !entry?.sent);
  say("objection", objection ?? "");
  const button = byId("send-button");
  button.disabled = objection !== null;
  button.textContent = entry?.sent ? "Send the same bytes again" : entry ? "Send the stored answer" : "Answer and send";
  button.classList.toggle("main", !entry?.sent);
  // What the coin said is shown once it is sent: who saw it before could send only what they like.
  show("answered", Boolean(entry?.sent && entry.report));
  if (entry?.sent && entry.report) {
    say("answered-words", answered(task, entry.report, []));
    say("answered-bytes", toHex(entry.report));
  }
}

async function renderModel() {
  const { model } = state;
  const best = model ? recommend(model, await numbered(model.items)) : [];
  byId("list").replaceChildren(...best.map(({ item }) => element("li", {}, item)));
  say("model-words", model ? [`Learnt from ${model.reports} answers.`, ...model.notes].join(" ") : "");
}

function renderRequests() {
  byId("requests").replaceChildren(
    ...sent.map(({ when, method, url, body }) =>
      element("tr", {}, element("td", {}, when.slice(11, 19)), element("td", {}, `${method} ${url}`), element("td", {}, body ? toHex(body) : "nothing")),
    ),
  );
}

async function render() {
  const kept = await diary.look();
  show("begin", !kept);
  show("diary", Boolean(kept));
  show("campaign", Boolean(kept));
  show("demo", state.address !== "" && new URL(state.address).origin === location.origin);
  if (kept) {
    renderDiary(kept);
    await renderOffer(kept);
    await renderModel();
  }
  renderRequests();
}

/** An invitation is in the address's fragment, which is sent to nobody: #campaign=https://…&token=… */
function readInvitation() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has("campaign")) return;
  byId("address").value = given.get("campaign") ?? "";
  byId("token").value = given.get("token") ?? "";
  history.replaceState(null, "", location.pathname);
}

async function takeUp() {
  const kept = await diary.paper("campaign");
  if (!kept) return;
  Object.assign(state, { address: kept.address, token: kept.token, task: await Task.fromJson(kept.task) });
  byId("address").value = kept.address;
  byId("token").value = kept.token;
  const model = await diary.paper("model");
  if (model) state.model = new Model(model);
}

/** @param {string} field @param {string} help @param {string} what */
function explainLimit(field, help, what) {
  const input = byId(field);
  const explain = () => {
    try {
      say(help, `Someone’s odds about your ratings can change by at most a factor of ${odds(parseEpsilon(input.value.trim()))} ${what}.`);
    } catch {
      say(help, "Expected a number such as 0.5 or 4.");
    }
  };
  input.addEventListener("input", explain);
  explain();
}

async function registerWorker() {
  if (!isHosted || !navigator.serviceWorker) return;
  const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("evenhand", { createScriptURL: (/** @type {string} */ url) => url });
  await navigator.serviceWorker.register(policy ? policy.createScriptURL("sw.js") : "sw.js").catch(() => {});
}

async function start() {
  explainLimit("ceiling", "ceiling-help", "through one campaign");
  explainLimit("lifetime", "lifetime-help", "through all campaigns together");
  const on = (/** @type {string} */ id, /** @type {string} */ event, /** @type {() => Promise<string | void>} */ work) =>
    byId(id).addEventListener(event, (/** @type {Event} */ happened) => {
      happened.preventDefault();
      act(work);
    });
  on("begin-form", "submit", begin);
  on("campaign-form", "submit", lookAtCampaign);
  on("send-button", "click", answerAndSend);
  on("model-button", "click", lookForModel);
  on("public-no", "click", () => diary.decidePublicRated(false));
  on("public-yes", "click", () => diary.decidePublicRated(true));
  byId("find").addEventListener("input", listFilms);
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  const hosted = `This page comes from ${location.origin}. Whoever runs that address decides what the page does.`;
  say("origin", isHosted ? hosted : "This page is part of an extension that you installed.");
  await act(async () => {
    await takeUp();
    readInvitation();
    state.ratings = await diary.ratings();
    listFilms();
  });
  await registerWorker();
  document.body.dataset.ready = "yes";
}

start();

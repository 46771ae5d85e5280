// The form of a new study: fields and text of one thing, checked while one types, planned, submitted.
import { send } from "./api.js";
import { grow, mark, read } from "./fields.js";

const PAUSE_MS = 350;
const form = document.getElementById("draft");
const [fields, checked, planned] = ["fields", "checked", "planned"].map((id) => document.getElementById(id));
const [plan, submit] = ["plan", "send"].map((id) => document.getElementById(id));
let waiting = 0;
let newest = 0;

const draft = () => ({
  text: form.text.value, name: form.elements.namedItem("name").value.trim(),
  budget: form.budget.value.trim(),
});

// What the service sets are parts of the page, with all text escaped.
async function set(place, answer) {
  place.innerHTML = await answer.text();
}

async function check(fromFields) {
  const mine = ++newest;
  const asked = fromFields ? { ...draft(), spec: read(fields) } : draft();
  let found;
  try {
    const answer = await send("POST", "/submit/check", asked);
    if (!answer.ok) return await set(checked, answer);
    found = await answer.json();
  } catch {
    checked.textContent = "The service does not answer; try again.";
    return;
  }
  if (mine !== newest) return;
  if (fromFields) form.text.value = found.text;
  else if (found.fields) fields.innerHTML = found.fields;
  checked.innerHTML = found.shown;
  mark(fields, found.errors);
  plan.disabled = !found.valid || !form.budget.value.trim();
}

function changed(fromFields) {
  newest += 1;
  plan.disabled = submit.disabled = true;
  planned.replaceChildren();
  clearTimeout(waiting);
  waiting = setTimeout(check, PAUSE_MS, fromFields);
}

form.addEventListener("input", (event) => changed(fields.contains(event.target)));
grow(fields, () => changed(true));

function tick(begin) {
  const seconds = Math.round((performance.now() - begin) / 1000);
  planned.querySelector("output").textContent = `${seconds} s`;
}

async function planning(work) {
  planned.innerHTML = "<p role='status'><progress aria-label='Planning'></progress> "
    + "Timing two architectures for a few steps. <output aria-live='off'></output></p>";
  const clock = setInterval(tick, 1000, performance.now());
  try {
    return await work;
  } finally {
    clearInterval(clock);
  }
}

plan.addEventListener("click", async () => {
  const mine = newest;
  plan.disabled = true;
  try {
    const answer = await planning(send("POST", "/submit/plan", draft()));
    if (mine !== newest) return;
    await set(planned, answer);
  } catch {
    if (mine !== newest) return;
    planned.textContent = "The service does not answer; try again.";
  }
  // Where no plan can be made here, the reason is shown, and workers elsewhere may still do it.
  plan.disabled = submit.disabled = false;
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (submit.disabled) return;
  submit.disabled = true;
  try {
    const answer = await send("POST", "/submit", draft());
    if (answer.ok) return location.assign((await answer.json()).page);
    await set(planned, answer);
  } catch {
    planned.textContent = "The service does not answer; try again.";
  }
  submit.disabled = false;
});

check(false);

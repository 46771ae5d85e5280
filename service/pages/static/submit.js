// The form of a new study: checked while one types, planned, then submitted.
import { send } from "./api.js";

const form = document.getElementById("draft");
const [checked, planned] = ["checked", "planned"].map((id) => document.getElementById(id));
const [plan, submit] = ["plan", "send"].map((id) => document.getElementById(id));
let waiting = 0;
let newest = 0;

const draft = () => ({
  text: form.text.value, name: form.elements.namedItem("name").value.trim(),
  budget: form.budget.value.trim(),
});

// The service sets these parts of the page, with all text escaped.
async function show(place, address) {
  try {
    const answer = await send("POST", address, draft());
    place.innerHTML = await answer.text();
  } catch {
    place.textContent = "The service does not answer; try again.";
  }
}

async function check() {
  const mine = ++newest;
  const holder = document.createElement("div");
  await show(holder, "/submit/check");
  if (mine !== newest) return;
  checked.replaceChildren(...holder.childNodes);
  plan.disabled = !checked.querySelector("[data-valid]") || !form.budget.value.trim();
}

form.addEventListener("input", () => {
  plan.disabled = submit.disabled = true;
  planned.replaceChildren();
  clearTimeout(waiting);
  waiting = setTimeout(check, 350);
});

plan.addEventListener("click", async () => {
  const mine = newest;
  plan.disabled = true;
  planned.textContent = "Timing two architectures; this takes a while.";
  await show(planned, "/submit/plan");
  if (mine !== newest) { planned.replaceChildren(); return; }
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
    planned.innerHTML = await answer.text();
  } catch {
    planned.textContent = "The service does not answer; try again.";
  }
  submit.disabled = false;
});

check();

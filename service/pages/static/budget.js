// The dialog that sets a study's budget. It stands outside the parts that events replace, so what
// one types stays.
import { call } from "./api.js";

const dialog = document.getElementById("budget-dialog");
const form = dialog.querySelector("form");
const [input, said, send] = ["input", "[role=alert]", ".main"].map((one) => form.querySelector(one));

function tell(problem) {
  said.textContent = problem;
  said.hidden = !problem;
  if (problem) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-budget]");
  if (!button) return;
  tell("");
  input.value = button.dataset.budget;
  dialog.showModal();
  input.select();
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  send.disabled = true;
  const problem = await call("PUT", form.dataset.address, { budget: input.value.trim() });
  send.disabled = false;
  tell(problem);
  if (problem) return input.focus();
  dialog.close();
  document.dispatchEvent(new Event("look-again"));
});

form.querySelector("[data-cancel]").addEventListener("click", () => dialog.close());

// An event may have replaced the button that opened the dialog, to which a browser would return.
dialog.addEventListener("close", () => document.querySelector("button[data-budget]")?.focus());

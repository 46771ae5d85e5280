import { call, say } from "./api.js";

const form = document.getElementById("login");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = await call("POST", "/api/v1/session", { token: form.token.value.trim() });
  say(problem);
  if (!problem) location.assign(form.dataset.next);
});

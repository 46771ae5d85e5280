// What every page has: live parts, buttons that call the API, log out, times.
import { follow } from "./live.js";
import { call, say } from "./api.js";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("logOut" in button.dataset) {
    await call("DELETE", "/api/v1/session");
    location.assign("/login");
  } else if (button.dataset.call) {
    if (button.dataset.sure && !window.confirm(button.dataset.sure)) return;
    await change(button, button.dataset.call);
  }
});

async function change(button, address) {
  button.disabled = true;
  const problem = await call("POST", address);
  say(problem);
  button.disabled = false;
  document.dispatchEvent(new Event("look-again"));
}

document.addEventListener("keydown", (event) => {
  const sends = event.target instanceof Element && event.target.matches("[data-send]");
  if (sends && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.form.requestSubmit();
  }
});

const STEPS = [[60, 1, "second"], [3600, 60, "minute"], [86400, 3600, "hour"], [2678400, 86400, "day"]];

function tell() {
  for (const time of document.querySelectorAll("time")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const step = STEPS.find(([end]) => seconds < end);
    if (seconds < 1 || !step) continue;
    const n = Math.floor(seconds / step[1]);
    time.textContent = `${n} ${step[2]}${n === 1 ? "" : "s"} ago`;
  }
}

setInterval(tell, 20000);
follow();

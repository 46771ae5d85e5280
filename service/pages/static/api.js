// Calls of the API, with what the service asks of a browser.
const csrf = document.querySelector("meta[name=csrf]").content;

export function headers() {
  return csrf ? { "X-CSRF-Token": csrf } : {};
}

export function send(method, address, body) {
  const given = headers();
  if (body !== undefined) given["Content-Type"] = "application/json";
  return fetch(address, {
    method, headers: given, body: body === undefined ? undefined : JSON.stringify(body),
  });
}

// Returns what is wrong in words, nothing where all went well.
export async function call(method, address, body) {
  try {
    const answer = await send(method, address, body);
    if (answer.ok) return "";
    const problem = await answer.json();
    return problem.detail || problem.title;
  } catch {
    return "The service does not answer; try again.";
  }
}

export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  place.hidden = !text;
}

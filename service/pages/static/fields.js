// The fields of a form: what they hold as a document, what is wrong beside them, lists that grow.

const OWNERS = "[data-key], [data-variant], [data-item]";
const GROUPS = { section: read, union, list };

function parts(place) {
  return [...place.querySelectorAll("[data-key]")]
    .filter((field) => field.parentElement.closest(OWNERS) === place);
}

function items(list) {
  return [...list.querySelector(".items").children];
}

// A document of the fields in a place; those that have their default are left out.
export function read(place) {
  const found = {};
  for (const field of parts(place)) {
    const value = valueOf(field);
    if (value === undefined || isDefault(field, value)) continue;
    if (field.dataset.type === "section" && !Object.keys(value).length) continue;
    found[field.dataset.key] = value;
  }
  return found;
}

function isDefault(field, value) {
  const text = field.dataset.default;
  return Boolean(text) && JSON.stringify(value) === JSON.stringify(JSON.parse(text));
}

function valueOf(field) {
  const { type } = field.dataset;
  if (type in GROUPS) return GROUPS[type](field);
  const input = field.querySelector("input, select, textarea");
  if (type === "flag") return input.checked;
  const text = input.value.trim();
  if (type === "lines") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (type === "numbers") return text.split(/[\s,]+/).filter(Boolean).map(number);
  if (!text) return undefined;
  if (type === "integer" || type === "number") return number(text);
  return type === "json" ? parsed(text) : text;
}

// What is no number stays as it is, so that the service says what is wrong with it.
function number(text) {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : text;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function kindWith(kind, settings) {
  return Object.keys(settings).length ? { kind, ...settings } : kind;
}

function variantOf(field) {
  const { value } = field.querySelector("[data-pick]");
  const all = [...field.children].filter((child) => "variant" in child.dataset);
  return [value, all, all.find((variant) => variant.dataset.variant === value)];
}

function union(field) {
  const [kind, , variant] = variantOf(field);
  return variant ? kindWith(kind, read(variant)) : kind;
}

function list(field) {
  return items(field).map((item) => {
    const { kind } = item.dataset;
    return kind ? kindWith(kind, read(item)) : read(item);
  });
}

// Puts messages beside the fields that their paths lead to.
export function mark(form, errors) {
  for (const old of form.querySelectorAll("em.bad")) {
    old.hidden = true;
    old.textContent = "";
  }
  for (const old of form.querySelectorAll("[aria-invalid]")) old.removeAttribute("aria-invalid");
  for (const { path, message } of errors) {
    const place = target(form, path.split(".").slice(1));
    if (place !== form) say(place, message);
  }
}

function target(form, path) {
  let here = form;
  for (const part of path) {
    const inside = here.dataset.type === "union" ? variantOf(here)[2] ?? here : here;
    const next = here.dataset.type === "list"
      ? items(here)[Number(part)]
      : parts(inside).find((field) => field.dataset.key === part);
    here = next ?? here;  // a kind in a path names no field
  }
  return here;
}

function say(place, message) {
  const words = place.querySelector("em.bad");
  words.textContent = words.textContent ? `${words.textContent}; ${message}` : message;
  words.hidden = false;
  if (place.matches("label")) {
    place.querySelector("input, select, textarea").setAttribute("aria-invalid", "true");
  }
  for (let here = place.parentElement; here; here = here.parentElement) {
    if (here.matches("details")) here.open = true;
  }
}

// Lists grow and shrink, alternatives change places; `changed` is called after each.
export function grow(form, changed) {
  form.addEventListener("change", ({ target: picked }) => {
    if (!picked.matches("[data-pick]")) return;
    const [, all, chosen] = variantOf(picked.closest("[data-key]"));
    for (const variant of all) variant.hidden = variant !== chosen;
  });
  form.addEventListener("click", ({ target: clicked }) => {
    const button = clicked.closest("[data-add], [data-remove]");
    if (!button) return;
    const field = button.closest("[data-key]");
    if ("add" in button.dataset) add(field);
    else remove(field, button.closest("[data-item]"));
    changed();
  });
}

function add(field) {
  const kind = field.querySelector(":scope > .actions [data-kinds]")?.value ?? "";
  const offers = [...field.children].filter((child) => child.matches("template"));
  const offer = offers.find((template) => template.dataset.kind === kind);
  const fresh = offer.content.cloneNode(true).firstElementChild;
  field.querySelector(".items").append(fresh);
  fresh.querySelector("input, select, textarea, button").focus();
}

function remove(field, item) {
  const next = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  (next?.querySelector("[data-remove]") ?? field.querySelector(":scope > .actions [data-add]")).focus();
}

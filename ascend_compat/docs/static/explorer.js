// The explorer: filters, comparisons and "what can I run?" over the data of this page's data.js.
// The choice is kept in the address (after #), so that a view can be sent.
"use strict";
(() => {
  const data = window.MATRIX, words = data.words;
  const form = document.getElementById("explorer"), table = document.getElementById("result");
  const count = document.getElementById("count"), more = document.getElementById("more");
  const PAGE = 200;
  let limit = PAGE;

  const said = (text, numbers) => text.replace(/\{(\w)\}/g, (_, name) => numbers[name].toLocaleString());
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const option = (value, text) => element("option", text, { value });
  const fill = (name, entries, first) => {
    const select = form.elements[name], held = select.value;
    select.replaceChildren(...(first === undefined ? [] : [option("", first)]), ...entries.map(([value, text]) => option(value, text)));
    if ([...select.options].some((each) => each.value === held)) select.value = held;
  };
  const link = (folder, place) => {
    const made = element("a", data[folder][place][1]);
    made.href = `../${folder}/${encodeURIComponent(data[folder][place][0])}.html`;
    return made;
  };
  const names = (entries) => entries.map(([id, name]) => [id, name]);
  const place = (entries, id) => entries.findIndex((entry) => entry[0] === id);

  const releases = data.products.flatMap(([id, name, list]) =>
    [...list].reverse().map((release) => [`${id}@${release}`, name === release ? name : `${name} ${release}`]));

  // What a line says in a release ("" = the last one that states it): [letter, number of the release], or null.
  const stated = (line, release) => {
    const [product, letters] = [data.products[line[0]], line[4]];
    if (release) {
      const [id, name] = release.split("@");
      if (product[0] !== id) return null;
      const at = product[2].indexOf(name);
      return at < 0 || letters[at] === "." ? null : [letters[at], at];
    }
    for (let at = letters.length - 1; at >= 0; at--) if (!"?.".includes(letters[at])) return [letters[at], at];
    return null;
  };
  const key = (line) => line.slice(0, 4).join(",");
  const condition = (line, at) => data.texts[(data.conditions[key(line)] || {})[at]] || "";
  const rung = (line, letter, at) => ("?n".includes(letter) ? -1 : (data.ladder[key(line)] || {})[at] || 0);
  const status = (letter) => {
    const cell = element("td", undefined, { class: `s-${data.letters[letter] ? data.letters[letter][2] : "none"}` });
    if (data.letters[letter]) cell.append(element("span", data.letters[letter][0], { class: "sign", "aria-hidden": "true" }), ` ${data.letters[letter][1]}`);
    else cell.append(words.unstated);
    return cell;
  };
  const where = (line, at) => {
    const [id, name, list] = data.products[line[0]];
    const made = element("a", name === list[at] ? name : `${name} ${list[at]}`);
    made.href = `../matrix/${encodeURIComponent(`${id}-${list[at]}`)}.html`;
    return made;
  };
  const cell = (...inside) => { const made = element("td"); made.append(...inside); return made; };
  const head = (...inside) => { const made = element("th", undefined, { scope: "row" }); made.append(...inside); return made; };
  const row = (...cells) => { const made = element("tr"); made.append(...cells); return made; };
  const show = (caption, titles, rows, total, sentence) => {
    const top = element("thead"), body = element("tbody"), line = element("tr");
    line.append(...titles.map((title) => element("th", title, { scope: "col" })));
    top.append(line);
    body.append(...rows.slice(0, limit).map((make) => make()));
    table.replaceChildren(element("caption", caption, { class: "unseen" }), top, body);
    count.textContent = rows.length ? sentence : words.nothing;
    if (rows.length > limit) count.textContent = said(words.shown, { m: limit, n: total });
    more.hidden = rows.length <= limit;
  };

  const views = {
    list(chosen) {
      const needle = chosen.words.toLowerCase();
      const [model, feature, framework] = [place(data.models, chosen.model), place(data.features, chosen.feature), place(data.frameworks, chosen.framework)];
      const rows = [];
      for (const line of data.lines) {
        if (model >= 0 && line[2] !== model) continue;
        if (feature >= 0 && line[3] !== feature) continue;
        if (framework >= 0 && line[1] !== framework) continue;
        if (chosen.series && data.models[line[2]][2] !== chosen.series) continue;
        if (needle && ![data.models[line[2]], data.features[line[3]], data.frameworks[line[1]]].some((each) => `${each[0]} ${each[1]}`.toLowerCase().includes(needle))) continue;
        const says = stated(line, chosen.release);
        if (!says || (chosen.status && data.letters[says[0]][2] !== chosen.status)) continue;
        const step = rung(line, ...says);
        if (chosen.rung && (step < 0 || data.rungs[step][0] !== chosen.rung)) continue;
        rows.push(() => row(head(link("models", line[2])), cell(link("frameworks", line[1])), cell(link("features", line[3])), status(says[0]),
          cell(condition(line, says[1])), cell(where(line, says[1])), cell(step < 0 ? "" : data.rungs[step][1])));
      }
      show(words.list, [words.model, words.framework, words.feature, words.status, words.condition, words.release, words.rung], rows, rows.length, said(words.rows, { n: rows.length }));
    },
    compare(chosen) {
      const models = chosen.what !== "releases", framework = place(data.frameworks, chosen.framework);
      const sides = new Map();
      data.lines.forEach((line) => {
        if (framework >= 0 && line[1] !== framework) return;
        [chosen.a, chosen.b].forEach((side, number) => {
          if (models && data.models[line[2]][0] !== side) return;
          const says = stated(line, models ? chosen.release : side);
          if (!says) return;
          const name = models ? `${line[0]},${line[1]},${line[3]}` : `${line[1]},${line[2]},${line[3]}`;
          if (!sides.has(name)) sides.set(name, [null, null]);
          sides.get(name)[number] = [line, says];
        });
      });
      const letter = (side) => (side ? side[1][0] : ".");
      const text = (side) => letter(side) + (side ? condition(side[0], side[1][1]) : "");
      let differ = 0;
      const rows = [];
      for (const both of sides.values()) {
        const differs = text(both[0]) !== text(both[1]);
        differ += differs;
        if (chosen.differ && !differs) continue;
        const line = (both[0] || both[1])[0];
        const side = (one) => {
          const made = status(letter(one));
          if (one && condition(one[0], one[1][1])) made.append(` (${condition(one[0], one[1][1])})`);
          return made;
        };
        rows.push(() => {
          const made = row(...(models ? [head(link("features", line[3])), cell(link("frameworks", line[1])), cell(data.products[line[0]][1])]
            : [head(link("models", line[2])), cell(link("frameworks", line[1])), cell(link("features", line[3]))]), side(both[0]), side(both[1]));
          if (differs) made.className = "differs";
          return made;
        });
      }
      const named = (id) => (models ? names(data.models) : releases).find((each) => each[0] === id)?.[1] || "";
      show(words.compare, [...(models ? [words.feature, words.framework, words.release] : [words.model, words.framework, words.feature]), named(chosen.a), named(chosen.b)],
        rows, rows.length, said(words.differences, { n: sides.size, m: differ }));
    },
    run(chosen) {
      const needs = chosen.needs.map((id) => place(data.features, id)), framework = place(data.frameworks, chosen.framework);
      if (!needs.length) {
        show(words.run, [], [], 0, "");
        count.textContent = words.choose;
        return;
      }
      const found = new Map();
      for (const line of data.lines) {
        if (!needs.includes(line[3]) || (framework >= 0 && line[1] !== framework)) continue;
        const says = stated(line, chosen.release);
        if (!says || !"sp".includes(says[0])) continue;
        const name = `${line[2]},${line[0]},${line[1]}`;
        if (!found.has(name)) found.set(name, []);
        found.get(name).push([line, says]);
      }
      const rows = [...found.values()].filter((each) => each.length === needs.length).map((each) => () => {
        const line = each[0][0];
        const under = [...new Set(each.map(([one, says]) => condition(one, says[1])).filter(Boolean))].join("; ");
        const oldest = each.reduce((one, other) => (other[1][1] < one[1][1] ? other : one));
        const step = Math.min(...each.map(([one, says]) => rung(one, ...says)));
        return row(head(link("models", line[2])), cell(link("frameworks", line[1])), cell(where(line, oldest[1][1])), cell(under), cell(data.rungs[step][1]));
      });
      show(words.run, [words.model, words.framework, words.release, words.condition, words.rung], rows, rows.length, said(words.fits, { n: rows.length }));
    },
  };

  const read = () => {
    const chosen = { needs: [...form.querySelectorAll("#needs input:checked")].map((each) => each.value) };
    for (const each of form.elements) {
      if (each.type === "radio") { if (each.checked) chosen[each.name] = each.value; }
      else if (each.type === "checkbox") { if (each.name === "differ") chosen.differ = each.checked; }
      else if (each.name) chosen[each.name] = each.value;
    }
    return chosen;
  };
  const keep = (chosen) => {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(chosen)) {
      if (name === "needs") value.forEach((each) => parts.append("needs", each));
      else if (name === "differ") { if (value && chosen.view === "compare") parts.set(name, "1"); }
      else if (["a", "b", "what"].includes(name)) { if (chosen.view === "compare") parts.set(name, value); }
      else if (value && !(name === "view" && value === "list")) parts.set(name, value);
    }
    const address = parts.toString();
    history.replaceState(null, "", address ? `#${address}` : location.pathname + location.search);
    const other = document.querySelector("a.switch");
    if (other) other.hash = address;
  };
  const sides = (what) => {
    const entries = what === "releases" ? releases : names(data.models);
    fill("a", entries);
    fill("b", entries);
    if (form.elements.a.value === form.elements.b.value) form.elements.b.selectedIndex = Math.min(1, entries.length - 1);
  };
  const draw = () => {
    const chosen = read();
    for (const part of form.querySelectorAll("[data-view]")) part.hidden = part.dataset.view !== chosen.view;
    form.elements.release.closest("label").hidden = chosen.view === "compare" && chosen.what === "releases";
    keep(chosen);
    views[chosen.view](chosen);
  };
  const restore = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    form.reset();
    if (parts.get("what")) form.elements.what.value = parts.get("what");
    sides(form.elements.what.value);
    for (const [name, value] of parts) {
      const field = form.elements[name];
      if (name === "needs") form.querySelectorAll("#needs input").forEach((each) => { if (each.value === value) each.checked = true; });
      else if (name === "differ") field.checked = true;
      else if (field) field.value = value;
    }
    limit = PAGE;
    draw();
  };

  fill("model", names(data.models), words.any);
  fill("series", [...new Set(data.models.map((each) => each[2]))].map((each) => [each, each]), words.any);
  fill("feature", names(data.features), words.any);
  fill("framework", names(data.frameworks), words.any);
  fill("status", Object.values(data.letters).map((each) => [each[2], each[1]]), words.any);
  fill("rung", data.rungs, words.any);
  fill("release", releases, words.now);
  document.getElementById("needs").append(...data.features.map(([id, name]) => {
    const label = element("label", undefined, { class: "tick" });
    label.append(element("input", undefined, { type: "checkbox", value: id, name: "need" }), ` ${name}`);
    return label;
  }));
  form.addEventListener("input", (event) => {
    limit = PAGE;
    if (event.target.name === "what") sides(event.target.value);
    draw();
  });
  form.addEventListener("reset", () => setTimeout(() => { limit = PAGE; draw(); }));
  more.addEventListener("click", () => { limit += PAGE; draw(); });
  window.addEventListener("hashchange", restore);
  restore();
})();

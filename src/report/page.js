"use strict";
(function () {
  var tip = document.getElementById("tip");
  var lit = null;

  function show(mark, x, y) {
    var row = document.getElementById(mark.getAttribute("data-row"));
    hide();
    tip.textContent = mark.getAttribute("aria-label").replace(/; /g, "\n");
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + 14 + box.height > innerHeight ? Math.max(8, y - box.height - 14) : y + 14) + "px";
    mark.classList.add("on");
    if (row) row.classList.add("on");
    lit = [mark, row];
  }
  function hide() {
    tip.hidden = true;
    if (lit) lit.forEach(function (e) { if (e) e.classList.remove("on"); });
    lit = null;
  }

  document.querySelectorAll("svg").forEach(function (svg) {
    var marks = Array.prototype.slice.call(svg.querySelectorAll(".mark[data-row]"));
    marks.forEach(function (mark, i) {
      mark.addEventListener("mousemove", function (e) { show(mark, e.clientX, e.clientY); });
      mark.addEventListener("mouseleave", hide);
      mark.addEventListener("focus", function () {
        var b = mark.getBoundingClientRect();
        marks.forEach(function (m) { m.setAttribute("tabindex", m === mark ? "0" : "-1"); });
        show(mark, b.right, b.bottom);
      });
      mark.addEventListener("blur", hide);
      mark.addEventListener("keydown", function (e) {
        var to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: marks.length - 1 }[e.key];
        if (e.key === "Escape") hide();
        if (to === undefined) return;
        e.preventDefault();
        marks[(to + marks.length) % marks.length].focus();
      });
    });
  });

  function value(row, i) {
    var cell = row.cells[i], v = cell.getAttribute("data-v");
    return v === null ? (cell.classList.contains("n") ? -Infinity : cell.textContent) : Number(v);
  }
  document.querySelectorAll("table").forEach(function (table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    heads.forEach(function (th, i) {
      th.firstElementChild.addEventListener("click", function () {
        var up = th.getAttribute("aria-sort") !== "ascending";
        var body = table.tBodies[0];
        var rows = Array.prototype.slice.call(body.rows);
        rows.sort(function (a, b) {
          var x = value(a, i), y = value(b, i);
          return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
        });
        heads.forEach(function (h) { h.removeAttribute("aria-sort"); });
        th.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.forEach(function (r) { body.appendChild(r); });
      });
    });
  });

  function quoted(s) {
    return /[",\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s;
  }
  function csv(table) {
    return Array.prototype.map.call(table.rows, function (row) {
      return Array.prototype.map.call(row.cells, function (c) {
        var v = c.getAttribute("data-v");
        return quoted(v === null ? c.textContent : v);
      }).join(",");
    }).join("\n") + "\n";
  }
  function copy(text, done) {
    if (navigator.clipboard && isSecureContext)
      return navigator.clipboard.writeText(text).then(done, function () { old(text, done); });
    old(text, done);
  }
  function old(text, done) {
    var area = document.createElement("textarea");
    area.value = text;
    document.body.appendChild(area);
    area.select();
    if (document.execCommand("copy")) done();
    area.remove();
  }
  document.querySelectorAll(".copy").forEach(function (button) {
    button.addEventListener("click", function () {
      var table = button.parentNode.nextElementSibling.querySelector("table");
      copy(csv(table), function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy as CSV"; }, 1500);
      });
    });
  });
})();

"use strict";
(function () {
  var tip = document.getElementById("tip");
  var lit = null;

  function say(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + 14 + box.height > innerHeight ? Math.max(8, y - box.height - 14) : y + 14) + "px";
  }
  function show(mark, x, y) {
    var row = document.getElementById(mark.getAttribute("data-row"));
    hide();
    say(mark.getAttribute("aria-label").replace(/; /g, "\n"), x, y);
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

  /* Line charts: the numbers are in the table of the figure, in any order. */
  document.querySelectorAll(".pick").forEach(function (pick) {
    var cross = pick.previousElementSibling, at = -1, points = null;

    function load() {
      if (points) return;
      var table = document.getElementById(pick.getAttribute("data-plot")).querySelector("table");
      var names = Array.prototype.map.call(table.tHead.rows[0].cells, function (c) { return c.textContent; });
      points = Array.prototype.map.call(table.tBodies[0].rows, function (row) {
        return { p: Number(row.getAttribute("data-p")), text: Array.prototype.map.call(row.cells, function (c, i) {
          return c.textContent ? names[i] + ": " + c.textContent : "";
        }).filter(Boolean).join("\n") };
      });
      points.sort(function (a, b) { return a.p - b.p; });
    }
    function nearest(p) {
      var lo = 0, hi = points.length - 1;
      while (lo < hi) {
        var mid = (lo + hi) >> 1;
        if (points[mid].p < p) lo = mid + 1; else hi = mid;
      }
      return lo > 0 && p - points[lo - 1].p < points[lo].p - p ? lo - 1 : lo;
    }
    function point(i, x, y) {
      if (!points.length) return;
      at = i;
      var box = pick.getBoundingClientRect();
      var to = Number(pick.getAttribute("x")) + points[i].p * Number(pick.getAttribute("width"));
      cross.setAttribute("x1", to);
      cross.setAttribute("x2", to);
      cross.setAttribute("visibility", "visible");
      hide();
      say(points[i].text, x === undefined ? box.left + points[i].p * box.width : x, y === undefined ? box.top : y);
    }
    function away() {
      cross.setAttribute("visibility", "hidden");
      hide();
    }
    pick.addEventListener("mousemove", function (e) {
      var box = pick.getBoundingClientRect();
      load();
      point(nearest((e.clientX - box.left) / box.width), e.clientX, e.clientY);
    });
    pick.addEventListener("mouseleave", away);
    pick.addEventListener("blur", away);
    pick.addEventListener("keydown", function (e) {
      load();
      var step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[e.key];
      if (e.key === "Escape") away();
      if (e.key === "Home") step = -points.length;
      if (e.key === "End") step = points.length;
      if (step === undefined) return;
      e.preventDefault();
      point(Math.max(0, Math.min(points.length - 1, at + step)));
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

  /* spreadsheets would interpret these as formulas */
  function quoted(s) {
    if (/^[=+\-@]/.test(s) && isNaN(s)) s = "'" + s;
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

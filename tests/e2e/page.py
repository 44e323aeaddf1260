#!/usr/bin/python3
"""The report page in a browser: charts have all points, tooltips match the
result file, tables can be sorted, nothing overflows the page."""
import json
import os
import shutil
import subprocess
import sys

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)
if os.environ.get("SANITIZE"):
    print("skipped: the page is the same under sanitizers")
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("skipped: chromium and chromium-driver are not installed")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
MARKUP = "x<img src=y onerror=document.title='gone'>"


def penstock(*args):
    p = subprocess.run([PENSTOCK, *args], capture_output=True, text=True,
                       timeout=600)
    check(p.returncode == 0, f"{args}: exit {p.returncode}: {p.stderr}")
    return p.stdout


def browser(tmp, width=1440):
    o = webdriver.ChromeOptions()
    for a in ("--headless", "--no-sandbox", "--disable-gpu",
              "--disable-dev-shm-usage", f"--window-size={width},900",
              f"--user-data-dir={tmp}/chrome"):
        o.add_argument(a)
    o.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")),
                            options=o)


def points(b, plot):
    """Points drawn into the wide chart of a plot."""
    path = b.find_element(By.CSS_SELECTOR,
                          f"svg.wide .pick[data-plot='{plot}']").find_element(
        By.XPATH, "..").find_element(By.CSS_SELECTOR, ".line")
    d = path.get_attribute("d")
    return d.count("M") + d.count("L")


def over_time(b, doc):
    series = doc["series"]
    n = len(series["t"])
    check(points(b, "r0-au") == n, f"{points(b, 'r0-au')} points, not {n}")
    pick = b.find_element(By.CSS_SELECTOR, "svg.wide .pick[data-plot='r0-au']")
    b.execute_script("arguments[0].scrollIntoView({block: 'center'})", pick)
    tip = b.find_element(By.ID, "tip")
    most = max(series["t"])
    box = pick.size["width"]
    for i in (0, n // 2, n - 1):
        x = series["t"][i] / most * box
        ActionChains(b).move_to_element_with_offset(
            pick, min(box / 2 - 1, x - box / 2), 0).perform()
        near = min(range(n), key=lambda k: abs(series["t"][k] - series["t"][i]))
        want = series["au"][near]
        said = tip.text.split("utilisation: ")[-1]
        check(tip.is_displayed() and
              abs(float(said.split(" ")[0]) - want) < 0.06,
              f"at {i}: shown {said}, not {want}")
    # the same with the keyboard, at every point
    pick.send_keys(Keys.HOME)
    for i in range(min(n, 8)):
        said = tip.text.split("utilisation: ")[-1]
        check(abs(float(said.split(" ")[0]) - series["au"][i]) < 0.06,
              f"key {i}: {said}, not {series['au'][i]}")
        pick.send_keys(Keys.ARROW_RIGHT)
    pick.send_keys(Keys.ESCAPE)
    check(not tip.is_displayed(), "Escape hides the tip")


def table(b):
    """Sorts the table of a chart, ascending and descending."""
    details = b.find_element(By.ID, "r0-au")
    b.execute_script("arguments[0].open = true", details)
    head = details.find_elements(By.CSS_SELECTOR, "th button")[1]
    seen = []
    for _ in range(2):
        b.execute_script("arguments[0].click()", head)
        seen.append(b.execute_script(
            "return Array.from(arguments[0].querySelectorAll('tbody tr'))"
            ".map(r => Number(r.cells[1].dataset.v))", details))
    check(seen[0] == sorted(seen[0]) and seen[1] == sorted(seen[1])[::-1],
          "the table sorts")


def quiet(b, where):
    bad = [e for e in b.get_log("browser") if e["level"] != "INFO"]
    check(not bad, f"{where}: console: {bad}")
    asked = b.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)")
    check(not [a for a in asked if not a.startswith("data:")],
          f"{where}: asked for {asked}")
    check("gone" not in b.title, f"{where}: markup in a name was run")


# Finds text of a chart that is cut off, overlaps other text, or occurs twice at
# an axis; and charts with an invisible line.
LEGIBLE = """
const bad = [];
document.querySelectorAll('main svg').forEach(svg => {
  const box = svg.getBoundingClientRect();
  if (!box.width || svg.closest('.legend')) return;
  const all = Array.from(svg.querySelectorAll('text')).map(e => ({
    text: e.textContent, anchor: e.getAttribute('text-anchor'),
    plain: !e.getAttribute('class'), r: e.getBoundingClientRect() }));
  const axes = svg.querySelector('.grid');
  all.forEach((x, i) => {
    if (x.r.left < box.left - 1 || x.r.right > box.right + 1 ||
        x.r.top < box.top - 1 || x.r.bottom > box.bottom + 1)
      bad.push('cut off: ' + x.text);
    all.slice(i + 1).forEach(y => {
      if (Math.min(x.r.right, y.r.right) - Math.max(x.r.left, y.r.left) > 0.5 &&
          Math.min(x.r.bottom, y.r.bottom) - Math.max(x.r.top, y.r.top) > 3)
        bad.push('one over the other: ' + x.text + ', ' + y.text);
      if (axes && x.plain && y.plain && x.anchor === y.anchor &&
          x.text === y.text)
        bad.push('twice: ' + x.text);
    });
  });
  svg.querySelectorAll('.line').forEach(line => {
    const d = line.getAttribute('d'), dots = line.nextElementSibling;
    if (d && !d.includes('L') && !(dots && dots.getAttribute('d')))
      bad.push('a point that cannot be seen: ' + d);
  });
});
return bad;
"""


def media(b, kind, scheme):
    b.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": kind, "features": [{"name": "prefers-color-scheme",
                                     "value": scheme}]})


def resize(b, width):
    """At once, which is not so of a window."""
    b.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1,
        "mobile": False})


def legible(b, where):
    for width in (400, 1200):
        resize(b, width)
        for kind, scheme in (("screen", "light"), ("print", "light")):
            media(b, kind, scheme)
            bad = b.execute_script(LEGIBLE)
            check(not bad, f"{where}, {width} px, {kind}: {bad[:5]}")
        media(b, "screen", "dark")
        dim = b.execute_script(CONTRAST)
        check(not dim, f"{where}, {width} px, dark: {dim[:5]}")
    media(b, "screen", "light")


# Finds marks and lines with too little contrast.
CONTRAST = """
const light = c => {
  const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => {
    x /= 255;
    return x <= 0.04045 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
};
const back = light(getComputedStyle(document.body).backgroundColor);
return Array.from(document.querySelectorAll(
    'main .bar, main .line, main .mark, main svg text')).map(e => {
  const s = getComputedStyle(e);
  const c = e.classList.contains('line') || e.classList.contains('hollow') ?
    s.stroke : s.fill;
  const l = light(c);
  const ratio = (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05);
  return ratio < 2.5 ? c + ': ' + ratio.toFixed(2) : '';
}).filter(Boolean);
"""


def odd(doc, **series):
    """The document of a run with other values over time."""
    doc = json.loads(json.dumps(doc))
    doc["series"].update(series)
    return doc


def test_odd(tmp):
    """Charts of rare data: empty, one point, zeros, very many points."""
    os.chdir(tmp)
    penstock("run", "unet3d_small", "output.folder=r", "--quiet")
    with open("r/result.json", encoding="utf-8") as f:
        run = json.load(f)
    many = range(3000)
    runs = {
        "one": odd(run, t=[1.5, 2.5], au=[100, None], load_mean_s=[0, 0],
                   load_max_s=[0, 0]),
        "zero": odd(run, t=[0, 0], au=[0, 0], load_mean_s=[1e-9, 1e-9],
                    load_max_s=[1e-9, 5e3]),
        "many": odd(run, t=[i * 1.7 for i in many],
                    au=[i % 101 for i in many],
                    load_mean_s=[1e-6 * (1 + i % 7) for i in many],
                    load_max_s=[1e-2 * (1 + i % 11) for i in many]),
    }
    runs["many"]["epochs"] = [dict(run["epochs"][0], epoch=i + 1)
                              for i in range(300)]
    for name, doc in runs.items():
        with open(f"{name}.json", "w", encoding="utf-8") as f:
            json.dump(doc, f)
    for name, most in (("c1", 1), ("c3", 3), ("c9", 4096)):
        at = [n for n in (1, 2, 3, 4, 8, 64, 512, 4096) if n <= most]
        with open(f"{name}.json", "w", encoding="utf-8") as f:
            json.dump({"schema": "penstock.capacity/1", "workload": "w",
                       "au_wanted_percentage": 90,
                       "curve": [{"accelerators": n, "au_percentage": 99 / n}
                                 for n in at]}, f)
    penstock("gen", "d", "files=20", "shape=8")
    penstock("sweep", "d", "threads=1,2,64", "store=posix,mmap", "--repeats",
             "2", "-o", "s.jsonl", "--quiet")
    penstock("bench", "resume", "--samples", "100", "--shape", "4", "--repeats",
             "2", "--at", "0,40", "batch_size=10", "-o", "b.jsonl")
    b = browser(tmp)
    try:
        for f in (*(f"{n}.json" for n in (*runs, "c1", "c3", "c9")), "s.jsonl",
                  "b.jsonl"):
            penstock("report", f, "-o", "odd.html")
            b.get(f"file://{tmp}/odd.html")
            check(b.find_elements(By.CSS_SELECTOR, "main svg"), f"{f}: no chart")
            legible(b, f)
    finally:
        b.quit()


def test_page(tmp):
    os.chdir(tmp)
    penstock("run", "unet3d_small", "train.epochs=6",
             f"output.folder={MARKUP}", "--quiet")
    penstock("gen", "d", "files=200", "shape=64")
    with open("load.json", "w", encoding="utf-8") as f:
        f.write(penstock("load", "d", "epochs=5", "--json"))
    with open(f"{MARKUP}/result.json", encoding="utf-8") as f:
        doc = json.load(f)
    doc["workload"] = MARKUP
    doc["verdict"] = f"{MARKUP}. \u2028</script>"
    with open(f"{MARKUP}/result.json", "w", encoding="utf-8") as f:
        json.dump(doc, f)
    penstock("report", MARKUP, "load.json", "-o", "page.html")
    check(os.path.getsize("page.html") < 300e3, "a page is small")
    b = browser(tmp)
    try:
        b.get(f"file://{tmp}/page.html")
        over_time(b, doc)
        table(b)
        check(b.find_elements(By.CSS_SELECTOR, "img") == [], "an image")
        quiet(b, "wide")
        legible(b, "page.html")
        resize(b, 390)
        wide = b.execute_script("return document.documentElement.scrollWidth")
        check(wide <= b.execute_script("return innerWidth"),
              f"390 px: the page is {wide} wide")
        shown = [s.is_displayed() for s in
                 b.find_elements(By.CSS_SELECTOR, "svg.narrow")]
        check(shown and all(shown), "narrow charts on a phone")
        quiet(b, "narrow")
        b.execute_script("const s = document.createElement('script');"
                         "s.textContent = 'document.title = \"gone\"';"
                         "document.body.append(s)")
        check(b.title != "gone", "a script that is not the page's was run")
    finally:
        b.quit()


main(globals())

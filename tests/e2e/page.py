#!/usr/bin/python3
"""The report page in a browser: charts have all points, what a pointer shows
is what the result file says, tables sort, nothing leaves the page."""
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
                       timeout=120)
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
    # the same by keys, at every point
    pick.send_keys(Keys.HOME)
    for i in range(min(n, 8)):
        said = tip.text.split("utilisation: ")[-1]
        check(abs(float(said.split(" ")[0]) - series["au"][i]) < 0.06,
              f"key {i}: {said}, not {series['au'][i]}")
        pick.send_keys(Keys.ARROW_RIGHT)
    pick.send_keys(Keys.ESCAPE)
    check(not tip.is_displayed(), "Escape hides the tip")


def table(b):
    """Sorting the numbers behind a chart, up and down."""
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
        b.set_window_size(390, 800)
        wide = b.execute_script("return document.documentElement.scrollWidth")
        check(wide <= b.execute_script("return innerWidth"),
              f"390 px: the page is {wide} wide")
        shown = [s.is_displayed() for s in
                 b.find_elements(By.CSS_SELECTOR, "svg.narrow")]
        check(shown and all(shown), "narrow charts on a phone")
        quiet(b, "narrow")
    finally:
        b.quit()


main(globals())

/*
 * The live view. Lines never exceed the terminal's width, so moving up by the
 * number of lines drawn is always right; the block is a single write. Terminals
 * that cannot move their cursor get plain lines, like files. There is no
 * terminal state to restore, so the terminal stays usable however the program
 * ends.
 */
#include "cli/live.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"
#include "cli/cli.h"
#include "emulate/system.h"
#include "base/hist.h"

#define SECOND ((uint64_t)1000000000)
#define EVERY (SECOND / 5)
#define FIRST (2 * SECOND)  /* shorter runs show nothing */
#define PLAIN (10 * SECOND) /* between plain lines */
/* Between plain lines of a job of many ranks, whose launcher hides the terminal
 * from them. */
#define RANKS (4 * SECOND)
#define MOST_ROWS 9u
#define MOST_COLS 100u
#define LABEL 14

static bool set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

/* Decided as in the C library, without setlocale(), which would affect numbers.
 */
static bool speaks_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < 3; i++)
		if (set(names[i])) {
			const char *dot = strchr(getenv(names[i]), '.');

			return dot && (!strncasecmp(dot, ".utf-8", 6) ||
				       !strncasecmp(dot, ".utf8", 5));
		}
	return false;
}

void live_start(struct live *v, bool quiet, int ranks)
{
	const char *term = getenv("TERM");

	*v = (struct live){ .on = !quiet, .ranks = ranks };
	v->block = isatty(STDERR_FILENO) && term && *term &&
		   strcmp(term, "dumb") != 0;
	v->color = v->block && !set("NO_COLOR");
	v->utf8 = speaks_utf8();
	v->start_ns = v->said_ns = pen__now_ns();
}

/* --- counters --- */

static struct pen_loader_info queue(const struct pen_loader *l)
{
	struct pen_loader_info now;

	pen_loader_get_info(l, &now, sizeof(now));
	return now;
}

static void take(struct live_snap *s, const struct pen_progress *p)
{
	struct pen_loader_info now;

	*s = (struct live_snap){ .ns = pen__now_ns(),
				 .cpu_ns = pen__cpu_ns(),
				 .bytes = p->done,
				 .compute_s = p->compute_s,
				 .load_s = p->load_s };
	if (!p->loader)
		return;
	now = queue(p->loader);
	s->samples = now.nsamples;
	s->bytes = now.payload_bytes;
}

static double fraction(const struct pen_progress *p)
{
	double f = p->total ? (double)p->done / (double)p->total : 0;

	f = f < 1 ? f : 1;
	return p->parts ? (p->part - 1 + f) / p->parts : f;
}

static void begin(struct live *v, const struct pen_progress *p)
{
	snprintf(v->what, sizeof(v->what), "%s", p->what);
	take(&v->first, p);
	v->second = v->first;
	v->nsnaps = v->nrates = 0;
	/* an evaluation between epochs does not end the training */
	if (v->whole_ns && (!p->parts || !strcmp(v->whole, v->what)))
		return;
	snprintf(v->whole, sizeof(v->whole), "%s", p->parts ? p->what : "");
	v->whole_ns = p->parts ? v->first.ns : 0;
	v->whole_from = fraction(p);
}

static void count(struct live *v, const struct pen_progress *p)
{
	struct live_snap *s = &v->snap[v->nsnaps++ % LIVE_SNAPS];
	double seconds;

	take(s, p);
	if (s->ns - v->second.ns < SECOND)
		return;
	seconds = (double)(s->ns - v->second.ns) / 1e9;
	v->rate[v->nrates++ % LIVE_SECONDS] =
		(float)((double)(p->loader ? s->samples - v->second.samples
					   : s->bytes - v->second.bytes) /
			seconds);
	v->second = *s;
}

static const struct live_snap *last(const struct live *v)
{
	return &v->snap[(v->nsnaps - 1) % LIVE_SNAPS];
}

/* The oldest snapshot still stored. */
static const struct live_snap *oldest(const struct live *v)
{
	return v->nsnaps < LIVE_SNAPS ? &v->first
				      : &v->snap[v->nsnaps % LIVE_SNAPS];
}

struct rates {
	double samples, bytes, cpus, au; /* au < 0: unknown */
};

static struct rates rates_since(const struct live *v,
				const struct live_snap *from)
{
	const struct live_snap *to = last(v);
	double s = (double)(to->ns - from->ns) / 1e9;
	double busy = to->compute_s - from->compute_s;
	double all = busy + to->load_s - from->load_s;

	s = s > 1e-3 ? s : 1e-3;
	return (struct rates){ (double)(to->samples - from->samples) / s,
			       (double)(to->bytes - from->bytes) / s,
			       (double)(to->cpu_ns - from->cpu_ns) / 1e9 / s,
			       all > 0 ? 100 * busy / all : -1 };
}

/* Seconds until all parts are done; < 0: unknown. */
static double seconds_left(const struct live *v, const struct pen_progress *p)
{
	const bool whole = p->parts && v->whole_ns;
	uint64_t from = whole ? v->whole_ns : v->first.ns;
	double done = fraction(p), f = done - (whole ? v->whole_from : 0);

	if (p->unit && !strcmp(p->unit, "seconds"))
		return (double)(p->total - p->done);
	if (!p->total || f <= 0)
		return -1;
	return (double)(last(v)->ns - from) / 1e9 * (1 - done) / f;
}

static double wait_s(const struct pen_progress *p, double percentile)
{
	return (double)(p->wait ? pen__hist_percentile(p->wait, percentile)
				: pen_loader_wait_percentile(p->loader,
							     percentile)) /
	       1e9;
}

static uint64_t resident(void)
{
	char *text = pen__proc_read("/proc/self/statm");
	const char *second = text ? strchr(text, ' ') : NULL;
	uint64_t pages = second ? strtoull(second, NULL, 10) : 0;

	pen__free(text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- text --- */

static const char *time_left(double s, char buf[48])
{
	unsigned long t = (unsigned long)(s < 3.6e8 ? ceil(s) : 3.6e8);

	if (t < 100)
		snprintf(buf, 48, "%lu s left", t);
	else if (t < 3600)
		snprintf(buf, 48, "%lu min %02lu s left", t / 60, t % 60);
	else
		snprintf(buf, 48, "%lu h %02lu min left", t / 3600,
			 t / 60 % 60);
	return buf;
}

static const char *title(const struct pen_progress *p, char buf[160])
{
	int n = snprintf(buf, 160, "%s", p->what);

	if (p->part)
		n += snprintf(buf + n, 160 - (size_t)n, " %u", p->part);
	if (p->parts)
		n += snprintf(buf + n, 160 - (size_t)n, " of %u", p->parts);
	if (!p->unit)
		return buf;
	if (!strcmp(p->unit, "bytes"))
		snprintf(buf + n, 160 - (size_t)n, ", %s of %s",
			 human_bytes((double)p->done),
			 human_bytes((double)p->total));
	else if (p->total)
		snprintf(buf + n, 160 - (size_t)n, ", %s of %s %s",
			 grouped(p->done), grouped(p->total), p->unit);
	else
		snprintf(buf + n, 160 - (size_t)n, ", %s %s", grouped(p->done),
			 p->unit);
	return buf;
}

static void plain_line(const struct live *v, const struct pen_progress *p)
{
	struct rates now = rates_since(v, oldest(v));
	double left = seconds_left(v, p);
	char head[160], buf[48], line[512];
	int n = snprintf(line, sizeof(line), "penstock: %s", title(p, head));
#define ADD(...)                                                               \
	(n += snprintf(line + n, sizeof(line) - (size_t)n, __VA_ARGS__))

	if (left >= 0)
		ADD(" (%.0f %%, %s)", 100 * fraction(p), time_left(left, buf));
	if (p->loader)
		ADD(", %s samples/s", human_count(now.samples));
	if (p->loader || (p->unit && !strcmp(p->unit, "bytes")))
		ADD(", %s/s", human_bytes(now.bytes));
	if (now.au >= 0)
		ADD(", utilisation %.1f %%", now.au);
	if (p->loader)
		ADD(", %u of %u batches ready", queue(p->loader).ready,
		    queue(p->loader).prefetch);
	if (v->ranks > 1)
		ADD(" (first of %d ranks)", v->ranks);
	fprintf(stderr, "%s\n", line);
#undef ADD
}

/* --- the block --- */

struct canvas {
	const struct live *v;
	char buf[8192];
	size_t n;
	unsigned rows, most_rows, cols, col;
};

static void raw(struct canvas *c, const char *s)
{
	const size_t n = strlen(s);

	if (n < sizeof(c->buf) - c->n) {
		memcpy(c->buf + c->n, s, n);
		c->n += n;
	}
}

/* Number of characters; in our own text, none is wider than a column. */
static unsigned width(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* Text that does not fit into the line is dropped, with all after it. */
static void put(struct canvas *c, const char *color, const char *text)
{
	if (c->rows > c->most_rows || width(text) > c->cols - c->col) {
		c->col = c->cols;
		return;
	}
	if (c->v->color && *color)
		raw(c, color);
	raw(c, text);
	if (c->v->color && *color)
		raw(c, "\033[0m");
	c->col += width(text);
}

static void __attribute__((format(printf, 2, 3)))
say(struct canvas *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put(c, "", text);
}

static void row(struct canvas *c, const char *label)
{
	char text[LABEL + 8];

	if (c->rows++ && c->rows <= c->most_rows)
		raw(c, "\033[K\r\n");
	c->col = 0;
	snprintf(text, sizeof(text), "  %-*s", LABEL, label ? label : "");
	if (label)
		put(c, "\033[2m", text);
	else
		put(c, "", "  ");
}

static void bar(struct canvas *c, const struct pen_progress *p, double left)
{
	const char *full = c->v->utf8 ? "█" : "#",
		   *rest = c->v->utf8 ? "░" : "-";
	unsigned cells = c->cols > 72 ? 40 : c->cols > 40 ? c->cols - 32 : 8;
	unsigned n = (unsigned)(fraction(p) * cells);
	char text[40 * 4] = "", buf[48];

	row(c, NULL);
	for (unsigned i = 0; i < n; i++)
		memcpy(text + i * strlen(full), full, strlen(full) + 1);
	put(c, "\033[32m", text);
	text[0] = '\0';
	for (unsigned i = n; i < cells; i++)
		memcpy(text + (i - n) * strlen(rest), rest, strlen(rest) + 1);
	put(c, "\033[2m", text);
	say(c, " %3.0f %%", 100 * fraction(p));
	if (left >= 0)
		say(c, ", %s", time_left(left, buf));
}

/* The rates of the last minute, one column per second, newest at the right. */
static void curve(struct canvas *c)
{
	static const char *const level[] = { "▁", "▂", "▃", "▄",
					     "▅", "▆", "▇", "█" };
	const struct live *v = c->v;
	uint64_t n = v->nrates < LIVE_SECONDS ? v->nrates : LIVE_SECONDS;
	unsigned room = c->cols - LABEL - 2;
	float most = 0;

	if (!v->utf8 || n < 2)
		return;
	n = n < room ? n : room;
	for (uint64_t i = v->nrates - n; i < v->nrates; i++)
		most = fmaxf(most, v->rate[i % LIVE_SECONDS]);
	row(c, "last minute");
	for (uint64_t i = v->nrates - n; most > 0 && i < v->nrates; i++)
		put(c, "\033[36m",
		    level[(int)(7 * v->rate[i % LIVE_SECONDS] / most)]);
}

static void loading(struct canvas *c, const struct pen_progress *p,
		    const struct rates *now, const struct rates *mean)
{
	const struct pen_loader_info ahead = queue(p->loader);

	row(c, "rate");
	say(c, "%s samples/s now", human_count(now->samples));
	say(c, ", %s mean", human_count(mean->samples));
	row(c, "delivered");
	say(c, "%s/s now", human_bytes(now->bytes));
	say(c, ", %s/s mean", human_bytes(mean->bytes));
	if (mean->au >= 0) {
		row(c, "utilisation");
		say(c, "%.1f %% now", now->au >= 0 ? now->au : mean->au);
		say(c, ", %.1f %% mean", mean->au);
	}
	row(c, "queue");
	say(c, "%u of %u batches ready", ahead.ready, ahead.prefetch);
	row(c, "batch wait");
	say(c, "p50 %s", human_time(wait_s(p, 50)));
	say(c, ", p99 %s", human_time(wait_s(p, 99)));
}

static void draw(struct canvas *c, const struct pen_progress *p)
{
	const struct live *v = c->v;
	struct rates now = rates_since(v, oldest(v)),
		     mean = rates_since(v, &v->first);
	char head[160];

	row(c, NULL);
	put(c, "\033[1m", title(p, head));
	if (v->ranks > 1)
		say(c, " (first of %d ranks)", v->ranks);
	if (p->total)
		bar(c, p, seconds_left(v, p));
	if (p->loader) {
		loading(c, p, &now, &mean);
	} else if (p->unit && !strcmp(p->unit, "bytes")) {
		row(c, "rate");
		say(c, "%s/s now", human_bytes(now.bytes));
		say(c, ", %s/s mean", human_bytes(mean.bytes));
	}
	row(c, "machine");
	say(c, "%.1f of %u CPUs", now.cpus, pen__cpus());
	say(c, ", %s of memory", human_bytes((double)resident()));
	curve(c);
}

static unsigned smaller(unsigned a, unsigned b)
{
	return b && b < a ? b : a;
}

/* Two columns stay free for the ^C that a terminal echoes after the block. */
static void measure_terminal(struct canvas *c)
{
	const char *set = getenv("COLUMNS");
	struct winsize w = { 0 };
	unsigned cols;

	ioctl(STDERR_FILENO, TIOCGWINSZ, &w);
	cols = smaller(w.ws_col ? w.ws_col : MOST_COLS, MOST_COLS);
	if (set && strtoul(set, NULL, 10) < cols)
		cols = smaller(cols, (unsigned)strtoul(set, NULL, 10));
	c->cols = cols > LABEL + 8 ? cols - 2 : LABEL + 6;
	c->most_rows = w.ws_row > 2 ? smaller(MOST_ROWS, w.ws_row - 1u)
				    : MOST_ROWS;
}

static void to_top(struct canvas *c, unsigned rows)
{
	char up[24];

	raw(c, "\r");
	snprintf(up, sizeof(up), "\033[%uA", rows - 1);
	if (rows > 1)
		raw(c, up);
}

static void redraw(struct live *v, const struct pen_progress *p)
{
	struct canvas c = { .v = v };

	measure_terminal(&c);
	if (v->rows)
		to_top(&c, v->rows);
	draw(&c, p);
	raw(&c, "\033[J");
	fwrite(c.buf, 1, c.n, stderr);
	v->rows = smaller(c.rows, c.most_rows);
	interrupt_below(true);
}

void live_clear(struct live *v)
{
	struct canvas c = { .v = v };

	if (!v->rows)
		return;
	to_top(&c, v->rows);
	raw(&c, "\033[J");
	fwrite(c.buf, 1, c.n, stderr);
	v->rows = 0;
	interrupt_below(false);
}

void live_show(struct live *v, const struct pen_progress *p)
{
	uint64_t now;

	if (!v->on)
		return;
	now = pen__clock_ns_of(CLOCK_MONOTONIC_COARSE);
	if (now < v->next_ns)
		return;
	v->next_ns = now + EVERY;
	if (strcmp(v->what, p->what) != 0)
		begin(v, p);
	count(v, p);
	if (v->block && now - v->start_ns >= FIRST && now > v->start_ns) {
		redraw(v, p);
	} else if (!v->block && now > v->said_ns &&
		   now - v->said_ns >= (v->ranks > 1 ? RANKS : PLAIN)) {
		plain_line(v, p);
		v->said_ns = now;
	}
}

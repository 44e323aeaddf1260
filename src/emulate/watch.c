/*
 * A thread that samples the counters of the machine once a second. It stores
 * counters, not rates: any two samples give exact rates for the time in
 * between, and a long run can drop every other sample. Rates are computed on
 * output.
 *
 * A sample without memory is omitted; monitoring never stops a run.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "emulate/system.h"

#define MAX_DISKS 16
#define MAX_SNAPS 16384 /* 4.5 hours; then every other one is dropped */
#define MAX_POINTS 1000
#define SECOND 1000000000u
#define MIB (1024.0 * 1024.0)

struct snap {
	uint64_t ns; /* monotonic */
	time_t at;
	struct pen_cpu_time cpu;
	struct pen_pressure psi;
};

struct pen_watch {
	struct pen_team *team;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	char name[MAX_DISKS][32];
	size_t ndisks;
	struct snap *snap;
	struct pen_disk *disk; /* ndisks per snap */
	size_t n, cap;
	uint64_t every_ns;
};

static void read_disks(const struct pen_watch *w, struct pen_disk *out)
{
	char *text = pen__proc_read("/proc/diskstats");
	struct pen_disk d;

	memset(out, 0, w->ndisks * sizeof(*out));
	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!pen__disk_parse(s, &d))
			continue;
		for (size_t i = 0; i < w->ndisks; i++)
			if (!strcmp(d.name, w->name[i]))
				out[i] = d;
	}
	pen__free(text);
}

static bool make_room(struct pen_watch *w)
{
	size_t cap = w->cap ? 2 * w->cap : 64;
	struct snap *s;
	struct pen_disk *d;

	if (w->n < w->cap)
		return true;
	s = pen__realloc(w->snap, cap, sizeof(*s));
	if (!s)
		return false;
	w->snap = s;
	d = pen__realloc(w->disk, cap, (w->ndisks + 1) * sizeof(*d));
	if (!d)
		return false;
	w->disk = d;
	w->cap = cap;
	return true;
}

/* Drops every other sample and keeps the first. */
static void thin(struct pen_watch *w)
{
	for (size_t i = 1; 2 * i < w->n; i++) {
		w->snap[i] = w->snap[2 * i];
		memcpy(w->disk + i * w->ndisks, w->disk + 2 * i * w->ndisks,
		       w->ndisks * sizeof(*w->disk));
	}
	w->n = (w->n + 1) / 2;
	w->every_ns *= 2;
}

/* The caller holds the lock. */
static void sample(struct pen_watch *w)
{
	struct snap *s;

	if (w->n >= MAX_SNAPS)
		thin(w);
	if (!make_room(w))
		return;
	s = &w->snap[w->n];
	s->ns = pen__now_ns();
	s->at = time(NULL);
	pen__cpu_time(&s->cpu);
	pen__pressure_read(&s->psi);
	read_disks(w, w->disk + w->n * w->ndisks);
	w->n++;
}

static void watch(void *arg, unsigned i)
{
	struct pen_watch *w = arg;
	uint64_t next;

	(void)i;
	pthread_mutex_lock(&w->lock);
	next = pen__now_ns() + w->every_ns;
	while (!w->stop) {
		struct timespec t = { .tv_sec = (time_t)(next / SECOND),
				      .tv_nsec = (long)(next % SECOND) };

		pthread_cond_timedwait(&w->wake, &w->lock, &t);
		if (w->stop || pen__now_ns() < next)
			continue;
		sample(w);
		next += w->every_ns;
		if (next < pen__now_ns()) /* the machine was suspended */
			next = pen__now_ns() + w->every_ns;
	}
	pthread_mutex_unlock(&w->lock);
}

/* The next name of a list, without "/dev/"; false at the end. */
static bool next_disk(const char **list, char name[32])
{
	static const char sep[] = ", \t[]'\"", dev[] = "/dev/";
	const char *s = *list + strspn(*list, sep);
	size_t n = strcspn(s, sep);

	*list = s + n;
	if (!strncmp(s, dev, strlen(dev)) && n > strlen(dev)) {
		s += strlen(dev);
		n -= strlen(dev);
	}
	snprintf(name, 32, "%.*s", (int)(n < 32 ? n : 31), s);
	return n > 0;
}

int pen__watch_check(const char *disks, struct pen_err *err)
{
	char *text = pen__proc_read("/proc/diskstats"), name[32];
	struct pen_disk d;
	int rc = 0;

	while (!rc && next_disk(&disks, name)) {
		bool found = false;

		for (const char *s = text; s; s = strchr(s, '\n')) {
			s += *s == '\n';
			found |= pen__disk_parse(s, &d) &&
				 !strcmp(d.name, name);
		}
		if (!found)
			rc = pen__fail(err, P_UNKNOWN_NAME,
				       "profiling.iostat_devices",
				       "no device '%s'; /proc/diskstats lists "
				       "all devices",
				       name);
	}
	pen__free(text);
	return rc;
}

static void name_disks(struct pen_watch *w, const char *disks)
{
	const char *s = disks ? disks : "";
	struct pen_disk d;
	char *text;

	while (w->ndisks < MAX_DISKS && next_disk(&s, w->name[w->ndisks]))
		w->ndisks++;
	if (w->ndisks)
		return;
	text = pen__proc_read("/proc/diskstats");
	for (s = text; s && w->ndisks < MAX_DISKS; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (pen__disk_parse(s, &d) && d.reads + d.writes)
			memcpy(w->name[w->ndisks++], d.name, sizeof(d.name));
	}
	pen__free(text);
}

static void watch_free(struct pen_watch *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	pen__free(w->snap);
	pen__free(w->disk);
	pen__free(w);
}

int pen__watch_start(struct pen_watch **out, const char *disks,
		     struct pen_err *err)
{
	struct pen_watch *w = pen__calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int rc;

	*out = NULL;
	if (!w)
		return pen__fail_nomem(err, "watch", sizeof(*w));
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	w->every_ns = SECOND;
	name_disks(w, disks);
	sample(w);
	rc = pen__team_start(&w->team, 1, "watch", watch, w, err);
	if (rc) {
		watch_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void pen__watch_now(struct pen_watch *w)
{
	pthread_mutex_lock(&w->lock);
	sample(w);
	pthread_mutex_unlock(&w->lock);
}

/* --- difference of two samples --- */

struct span {
	double s;
	const struct snap *to;
	struct pen_cpu_time cpu;
	const struct pen_disk *from_disk, *to_disk;
};

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0; /* the device was replaced */
}

static struct span span_of(const struct pen_watch *w, size_t i, size_t j)
{
	const struct snap *a = &w->snap[i], *b = &w->snap[j];
	struct span x = { .s = (double)more(b->ns, a->ns) / 1e9, .to = b };

	x.cpu.user = more(b->cpu.user, a->cpu.user);
	x.cpu.nice = more(b->cpu.nice, a->cpu.nice);
	x.cpu.system = more(b->cpu.system, a->cpu.system);
	x.cpu.iowait = more(b->cpu.iowait, a->cpu.iowait);
	x.cpu.steal = more(b->cpu.steal, a->cpu.steal);
	x.cpu.idle = more(b->cpu.idle, a->cpu.idle);
	x.from_disk = w->disk + i * w->ndisks;
	x.to_disk = w->disk + j * w->ndisks;
	return x;
}

#define MORE(x, i, field) more((x)->to_disk[i].field, (x)->from_disk[i].field)

static double per(uint64_t a, double b)
{
	return b > 0 ? (double)a / b : 0;
}

static void put_cpu(struct pen_text *t, const char *key, const struct span *x)
{
	const struct pen_cpu_time *c = &x->cpu;
	const double all = (double)(c->user + c->nice + c->system + c->iowait +
				    c->steal + c->idle) /
			   100;

	pen__json_open(t, key, '{');
	pen__json_num(t, "user", per(c->user, all));
	pen__json_num(t, "nice", per(c->nice, all));
	pen__json_num(t, "system", per(c->system, all));
	pen__json_num(t, "iowait", per(c->iowait, all));
	pen__json_num(t, "steal", per(c->steal, all));
	pen__json_num(t, "idle", per(c->idle, all));
	pen__json_close(t, '}');
}

static double merged(uint64_t merges, uint64_t requests)
{
	return per(100 * merges, (double)(merges + requests));
}

/* As `iostat -mx` counts: MB are MiB, request sizes KiB, times ms. */
static void put_iostat_disk(struct pen_text *t, const struct span *x, size_t i)
{
	const uint64_t r = MORE(x, i, reads), w = MORE(x, i, writes),
		       d = MORE(x, i, discards), f = MORE(x, i, flushes),
		       rm = MORE(x, i, reads_merged),
		       wm = MORE(x, i, writes_merged),
		       dm = MORE(x, i, discards_merged),
		       rb = MORE(x, i, read_bytes),
		       wb = MORE(x, i, write_bytes),
		       db = MORE(x, i, discard_bytes);
	const struct {
		const char *key;
		double value;
	} row[] = {
		{ "r/s", per(r, x->s) },
		{ "w/s", per(w, x->s) },
		{ "d/s", per(d, x->s) },
		{ "f/s", per(f, x->s) },
		{ "rMB/s", per(rb, x->s * MIB) },
		{ "wMB/s", per(wb, x->s * MIB) },
		{ "dMB/s", per(db, x->s * MIB) },
		{ "rrqm/s", per(rm, x->s) },
		{ "wrqm/s", per(wm, x->s) },
		{ "drqm/s", per(dm, x->s) },
		{ "rrqm", merged(rm, r) },
		{ "wrqm", merged(wm, w) },
		{ "drqm", merged(dm, d) },
		{ "r_await", per(MORE(x, i, read_ms), (double)r) },
		{ "w_await", per(MORE(x, i, write_ms), (double)w) },
		{ "d_await", per(MORE(x, i, discard_ms), (double)d) },
		{ "f_await", per(MORE(x, i, flush_ms), (double)f) },
		{ "rareq-sz", per(rb, 1024.0 * (double)r) },
		{ "wareq-sz", per(wb, 1024.0 * (double)w) },
		{ "dareq-sz", per(db, 1024.0 * (double)d) },
		{ "aqu-sz", per(MORE(x, i, weighted_ms), x->s * 1000) },
		{ "util", per(MORE(x, i, io_ms), x->s * 10) },
	};

	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++)
		pen__json_num(t, row[k].key, row[k].value);
}

/* the format of sysstat: 11/15/26 20:49:06 */
static void put_time(struct pen_text *t, const char *key, time_t at, bool day)
{
	char buf[80] = "";
	struct tm tm;
	int n;

	if (localtime_r(&at, &tm)) {
		n = snprintf(buf, sizeof(buf), "%02d/%02d/%02d", tm.tm_mon + 1,
			     tm.tm_mday, tm.tm_year % 100);
		if (!day)
			snprintf(buf + n, sizeof(buf) - (size_t)n,
				 " %02d:%02d:%02d", tm.tm_hour, tm.tm_min,
				 tm.tm_sec);
	}
	pen__json_str(t, key, buf);
}

static void put_statistics(struct pen_text *t, const struct pen_watch *w)
{
	pen__json_open(t, "statistics", '[');
	for (size_t j = 1; j < w->n; j++) {
		struct span x = span_of(w, j - 1, j);

		pen__json_open(t, NULL, '{');
		t->compact = true;
		put_time(t, "timestamp", x.to->at, false);
		put_cpu(t, "avg-cpu", &x);
		pen__json_open(t, "disk", '[');
		for (size_t i = 0; i < w->ndisks; i++) {
			pen__json_open(t, NULL, '{');
			pen__json_str(t, "disk_device", w->name[i]);
			put_iostat_disk(t, &x, i);
			pen__json_close(t, '}');
		}
		pen__json_close(t, ']');
		pen__json_close(t, '}');
		t->compact = false;
	}
	pen__json_close(t, ']');
}

int pen__watch_iostat(struct pen_watch *w, const char *path,
		      struct pen_err *err)
{
	struct pen_text t = { 0 };
	struct pen_host h;
	struct utsname u = { 0 };
	int rc;

	pen__host(&h);
	(void)uname(&u);
	pthread_mutex_lock(&w->lock);
	sample(w);
	pen__json_open(&t, NULL, '{');
	pen__json_open(&t, "sysstat", '{');
	pen__json_open(&t, "hosts", '[');
	pen__json_open(&t, NULL, '{');
	pen__json_str(&t, "nodename", h.name);
	pen__json_str(&t, "sysname", u.sysname);
	pen__json_str(&t, "release", u.release);
	pen__json_str(&t, "machine", u.machine);
	pen__json_int(&t, "number-of-cpus", h.cpus);
	put_time(&t, "date", w->n ? w->snap[0].at : time(NULL), true);
	put_statistics(&t, w);
	pthread_mutex_unlock(&w->lock);
	pen__json_close(&t, '}');
	pen__json_close(&t, ']');
	pen__json_close(&t, '}');
	pen__json_close(&t, '}');
	rc = pen__text_save(&t, path, err);
	pen__text_fini(&t);
	return rc;
}

/* --- for the result --- */

static void put_disk(struct pen_text *t, const struct span *x, size_t i)
{
	const uint64_t r = MORE(x, i, reads), w = MORE(x, i, writes);

	pen__json_int(t, "reads", r);
	pen__json_int(t, "read_bytes", MORE(x, i, read_bytes));
	pen__json_num(t, "read_await_ms", per(MORE(x, i, read_ms), (double)r));
	pen__json_int(t, "writes", w);
	pen__json_int(t, "write_bytes", MORE(x, i, write_bytes));
	pen__json_num(t, "write_await_ms",
		      per(MORE(x, i, write_ms), (double)w));
	pen__json_num(t, "queue_mean",
		      per(MORE(x, i, weighted_ms), x->s * 1000));
	pen__json_num(t, "busy_percent", per(MORE(x, i, io_ms), x->s * 10));
}

static void put_disks(struct pen_text *t, const struct pen_watch *w,
		      const struct span *x)
{
	pen__json_open(t, "disks", '[');
	for (size_t i = 0; i < w->ndisks; i++) {
		pen__json_open(t, NULL, '{');
		pen__json_str(t, "name", w->name[i]);
		put_disk(t, x, i);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
}

static void put_pressure(struct pen_text *t, const struct pen_pressure *a,
			 const struct pen_pressure *b)
{
	pen__json_open(t, "pressure", '{');
	pen__json_bool(t, "known", a->known && b->known);
	pen__json_int(t, "cpu_some_us", more(b->cpu_some, a->cpu_some));
	pen__json_int(t, "cpu_full_us", more(b->cpu_full, a->cpu_full));
	pen__json_int(t, "io_some_us", more(b->io_some, a->io_some));
	pen__json_int(t, "io_full_us", more(b->io_full, a->io_full));
	pen__json_int(t, "memory_some_us",
		      more(b->memory_some, a->memory_some));
	pen__json_int(t, "memory_full_us",
		      more(b->memory_full, a->memory_full));
	pen__json_close(t, '}');
}

static void put_samples(struct pen_text *t, const struct pen_watch *w)
{
	const size_t step = (w->n + MAX_POINTS - 1) / MAX_POINTS;
	const bool compact = t->compact;

	pen__json_open(t, "samples", '[');
	for (size_t i = 0; i + 1 < w->n; i += step) {
		size_t j = i + step < w->n ? i + step : w->n - 1;
		struct span x = span_of(w, i, j);

		pen__json_open(t, NULL, '{');
		t->compact = true;
		pen__json_num(t, "t",
			      (double)more(w->snap[j].ns, w->snap[0].ns) / 1e9);
		pen__json_num(t, "seconds", x.s);
		put_cpu(t, "cpu", &x);
		put_disks(t, w, &x);
		put_pressure(t, &w->snap[i].psi, &w->snap[j].psi);
		pen__json_close(t, '}');
		t->compact = compact;
	}
	pen__json_close(t, ']');
}

static void put_all(struct pen_text *t, const struct pen_watch *w)
{
	struct span x;

	if (!w->n)
		return;
	x = span_of(w, 0, w->n - 1);
	pen__json_num(t, "seconds", x.s);
	put_cpu(t, "cpu", &x);
	put_disks(t, w, &x);
	put_pressure(t, &w->snap[0].psi, &w->snap[w->n - 1].psi);
	put_samples(t, w);
}

void pen__watch_stop(struct pen_watch *w, struct pen_text *json)
{
	const bool alone = json && !json->depth;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pen__team_join(w->team);
	sample(w);
	if (alone)
		pen__json_open(json, NULL, '{');
	if (json)
		put_all(json, w);
	if (alone)
		pen__json_close(json, '}');
	watch_free(w);
}

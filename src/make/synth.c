/*
 * Shared by all generators of data sets: values, names, the check for free
 * space, threads. Values are noise from the counter-based generator, changed
 * just enough to be valid for their type. Callers check that the settings are
 * valid.
 */
#include "make/synth.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"

#define NEAR ((size_t)16 << 10) /* stays in the L1 cache between passes */
#define TICK_NS 100000000u

/* ---- values ---- */

/* [0, 1) in the requested float type, from 32 or 64 random bits each. */
static void unit_floats(void *buf, size_t n, enum pen_dtype t)
{
	float *f = buf;
	double *d = buf;
	uint16_t *h = buf;

	if (t == PEN_F16) { /* 10 bits: [0.5, 1), exact and never NaN */
		for (size_t i = 0; i < n / 2; i++)
			h[i] = (uint16_t)(0x3800 | (h[i] & 0x3ff));
	} else if (t == PEN_F32 || t == PEN_C64) {
		for (size_t i = 0; i < n / 4; i++) {
			uint32_t u;

			memcpy(&u, &f[i], 4);
			f[i] = (float)(u >> 8) * 0x1p-24f;
		}
	} else {
		for (size_t i = 0; i < n / 8; i++) {
			uint64_t u;

			memcpy(&u, &d[i], 8);
			d[i] = (double)(u >> 11) * 0x1p-53;
		}
	}
}

/* Eight bytes at a time, for any type. */
static void mask_words(uint8_t *p, size_t n, uint64_t mask)
{
	uint64_t w = 0;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		w &= mask;
		memcpy(p, &w, 8);
	}
	if (n) {
		memcpy(&w, p, n);
		w &= mask;
		memcpy(p, &w, n);
	}
}

/* Clears the top bit of an exponent of all ones, which means infinity or
 * NaN. In each half only 0x7c00 + 0x0400 carries into the sign bit. */
static uint64_t finite_halves(uint64_t w)
{
	const uint64_t sum = (w & 0x7c007c007c007c00u) + 0x0400040004000400u;

	return w & ~((sum & 0x8000800080008000u) >> 1);
}

static void tame_halves(uint8_t *p, size_t n)
{
	uint64_t w = 0;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		w = finite_halves(w);
		memcpy(p, &w, 8);
	}
	if (n) {
		memcpy(&w, p, n);
		w = finite_halves(w);
		memcpy(p, &w, n);
	}
}

/* Wider floats always lose the top bit of the exponent: one bit of 32 or 64. */
static void tame(const struct pen_synth *s, void *buf, size_t n)
{
	switch (s->dtype) {
	case PEN_BOOL:
		mask_words(buf, n, 0x0101010101010101u);
		break;
	case PEN_F16:
	case PEN_F32:
	case PEN_C64:
	case PEN_F64:
	case PEN_C128:
		if (s->unit)
			unit_floats(buf, n, s->dtype);
		else if (s->dtype == PEN_F16)
			tame_halves(buf, n);
		else if (s->dtype == PEN_F32 || s->dtype == PEN_C64)
			mask_words(buf, n, 0xbfffffffbfffffffu);
		else
			mask_words(buf, n, 0xbfffffffffffffffu);
		break;
	default:
		break;
	}
}

static void fill_noise(const struct pen_synth *s, uint64_t id, uint64_t off,
		       uint8_t *p, size_t n)
{
	while (n) {
		const size_t k = n < NEAR ? n : NEAR;

		pen__rng_fill(s->seed, id, off, p, k);
		tame(s, p, k);
		off += k;
		p += k;
		n -= k;
	}
}

unsigned pen__synth_zeros(double share)
{
	/* 16: a multiple of the size of any type */
	return share > 0 ? (unsigned)(share * PEN_SYNTH_PAGE / 16 + 0.5) * 16
			 : 0;
}

void pen__synth_fill(const struct pen_synth *s, uint64_t id, uint64_t off,
		     void *buf, size_t n)
{
	const uint64_t key = pen__rng_key(~s->seed, id);
	uint8_t *p = buf;

	if (!s->zeros) {
		fill_noise(s, id, off, p, n);
		return;
	}
	while (n) {
		const size_t in = off % PEN_SYNTH_PAGE;
		const size_t z0 =
			16 * pen__mulhi(pen__rng_at(key, off - in),
					(PEN_SYNTH_PAGE - s->zeros) / 16 + 1);
		const size_t z1 = z0 + s->zeros;
		/* up to the next boundary of the run or the page */
		size_t k = (in < z0 ? z0 : in < z1 ? z1 : PEN_SYNTH_PAGE) - in;

		k = k < n ? k : n;
		if (in >= z0 && in < z1)
			memset(p, 0, k);
		else
			fill_noise(s, id, off, p, k);
		off += k;
		p += k;
		n -= k;
	}
}

/* ---- names ---- */

static int digits(uint64_t v)
{
	return snprintf(NULL, 0, "%llu", (unsigned long long)v);
}

void pen__synth_subfolder(const struct pen_synth_names *s, uint64_t i,
			  char buf[32])
{
	buf[0] = '\0';
	if (s->subfolders > 1)
		snprintf(buf, 32, "%0*llu", digits(s->subfolders),
			 (unsigned long long)(i % s->subfolders));
}

void pen__synth_name(const struct pen_synth_names *s, uint64_t i, char *buf,
		     size_t cap)
{
	char sub[32];

	pen__synth_subfolder(s, i, sub);
	snprintf(buf, cap, "%s/%s%s%s_%0*llu_of_%llu%s", s->dir, sub,
		 sub[0] ? "/" : "", s->prefix, digits(s->files),
		 (unsigned long long)i, (unsigned long long)s->files,
		 s->suffix);
}

/* ---- space ---- */

static void say_bytes(uint64_t n, char buf[32])
{
	static const char *const unit[] = { "B",  "kB", "MB", "GB",
					    "TB", "PB", "EB" };
	double v = (double)n;
	unsigned u = 0;

	for (; v >= 999.5 && u < 6; u++)
		v /= 1000;
	snprintf(buf, 32, "%.3g %s", v, unit[u]);
}

/* Of path, or of the nearest existing folder above it. */
static bool free_space(const char *path, uint64_t *out)
{
	struct statvfs v;
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s", path);
	while (statvfs(dir, &v)) {
		char *slash = strrchr(dir, '/');

		if (!strcmp(dir, "/") || !strcmp(dir, "."))
			return false;
		if (slash && slash != dir)
			*slash = '\0';
		else
			snprintf(dir, sizeof(dir), slash ? "/" : ".");
	}
	*out = (uint64_t)v.f_bavail * v.f_frsize;
	return true;
}

int pen__synth_space(const char *path, uint64_t need, struct pen_err *err)
{
	char needs[32], has[32];
	uint64_t have;

	if (!free_space(path, &have) || need <= have)
		return 0;
	say_bytes(need, needs);
	say_bytes(have, has);
	return pen__fail(err, P_DISK_FULL, path,
			 "needs %s, but only %s is free on the file system",
			 needs, has);
}

/* ---- threads ---- */

static void run_thread(void *arg, unsigned t)
{
	struct pen_synth_run *r = arg;
	uint64_t i;

	while (!atomic_load(&r->stop) &&
	       (i = atomic_fetch_add(&r->next, 1)) < r->n)
		if (r->make(r->arg, i, &r->errs[t]))
			atomic_store(&r->stop, true);
	atomic_fetch_sub(&r->running, 1);
}

/* Starts with short sleeps, so that small jobs finish quickly. */
static bool watch(struct pen_synth_run *r)
{
	uint64_t asked = pen__now_ns();
	long ns = 100000;

	while (atomic_load(&r->running)) {
		nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
		ns = ns < 5000000 ? ns * 2 : 10000000;
		if (!r->tick || pen__now_ns() - asked < TICK_NS)
			continue;
		asked = pen__now_ns();
		if (r->tick(r->arg)) {
			atomic_store(&r->stop, true);
			return true;
		}
	}
	return false;
}

/* Threads that stopped because another failed have no error of their own. */
static int first_error(const struct pen_synth_run *r, unsigned n,
		       struct pen_err *err)
{
	const struct pen_err *worst = NULL;

	for (unsigned i = 0; i < n; i++)
		if (r->errs[i].code && (!worst || worst->code == PEN_ECLOSED))
			worst = &r->errs[i];
	if (!worst)
		return 0;
	if (err)
		*err = *worst;
	return worst->code;
}

int pen__synth_run(struct pen_synth_run *r, struct pen_err *err)
{
	unsigned n = r->threads ? r->threads : pen__cpus();
	struct pen_team *team;
	bool ended;
	int rc;

	if (n > r->n)
		n = r->n ? (unsigned)r->n : 1;
	r->errs = pen__calloc(n, sizeof(*r->errs));
	if (!r->errs)
		return pen__fail_nomem(err, r->name, n * sizeof(*r->errs));
	atomic_store(&r->next, 0);
	atomic_store(&r->running, n);
	rc = pen__team_start(&team, n, "pen-gen", run_thread, r, err);
	if (!rc) {
		ended = watch(r);
		pen__team_join(team);
		rc = first_error(r, n, err);
		if (ended && (!rc || rc == PEN_ECLOSED))
			rc = pen__fail(err, P_INTERRUPTED, r->name,
				       "interrupted");
	}
	pen__free(r->errs);
	r->errs = NULL;
	return rc;
}

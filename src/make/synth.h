/*
 * Making data sets: what the plain generator and the emulator's share. Values
 * are a function of (seed, stream, position), so any piece can be made alone,
 * by any thread, and comes out the same.
 */
#ifndef PEN_MAKE_SYNTH_H
#define PEN_MAKE_SYNTH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

#define PEN_SYNTH_PAGE 4096u

struct pen_synth {
	uint64_t seed;
	enum pen_dtype dtype; /* not PEN_F80 and PEN_C160 */
	/* Floats: uniform in [0, 1), which leaves zlib a tenth and more to
	 * gain. Else noise in all bits but one: finite, |x| < 2 (float16: of
	 * any size), and not to be compressed. */
	bool unit;
	/* Of every page of the stream so many bytes are 0, in one run,
	 * elsewhere in each: what can be compressed away. */
	unsigned zeros;
};

/* pen_synth.zeros for a share of bytes that compress away, 0 <= share < 1. */
unsigned pen__synth_zeros(double share);
/* Bytes [off, off + n) of stream id; both whole items. */
void pen__synth_fill(const struct pen_synth *, uint64_t id, uint64_t off,
		     void *buf, size_t n);

/* DIR/[SUB/]PREFIX_i_of_N.SUFFIX, numbers padded with zeros to the width of
 * what they are of; no SUB with less than two subfolders. */
struct pen_synth_names {
	const char *dir, *prefix, *suffix;
	uint64_t files, subfolders;
};
void pen__synth_name(const struct pen_synth_names *, uint64_t i, char *buf,
		     size_t cap);
/* "SUB", or "" when there are none. */
void pen__synth_subfolder(const struct pen_synth_names *, uint64_t i,
			  char buf[32]);

/* PEN_EIO, with both figures, when path's file system has less than need. */
int pen__synth_space(const char *path, uint64_t need, struct pen_err *err);

/*
 * make(arg, i) for every i below n, in several threads. The first failure
 * ends all, as does a tick other than 0, which the calling thread asks about
 * ten times a second (PEN_ECLOSED; may be NULL): make() looks at *stop now
 * and then.
 */
struct pen_synth_run {
	uint64_t n;
	unsigned threads; /* 0: as many as CPUs */
	int (*make)(void *arg, uint64_t i, struct pen_err *);
	int (*tick)(void *arg);
	void *arg;
	const char *name; /* for messages */
	/* the run's own */
	atomic_uint_fast64_t next;
	atomic_uint running;
	atomic_bool stop;
	struct pen_err *errs;
};
int pen__synth_run(struct pen_synth_run *, struct pen_err *err);

#endif

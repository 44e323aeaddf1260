/*
 * Shared by the plain generator of data sets and that of the emulator. Values
 * are a function of (seed, stream, position), so any thread can make any part,
 * with the same result.
 */
#ifndef PEN_MAKE_SYNTH_H
#define PEN_MAKE_SYNTH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

#define PEN_SYNTH_PAGE 4096u

struct pen_synth {
	uint64_t seed;
	enum pen_dtype dtype; /* except PEN_F80 and PEN_C160 */
	/* Floats: uniform in [0, 1), which zlib compresses by a tenth or
	 * more. Otherwise noise in all bits but one: finite, |x| < 2
	 * (float16: any size), and incompressible. */
	bool unit;
	/* Bytes per page of the stream that are 0, in one run at a varying
	 * offset, to make the data compressible. */
	unsigned zeros;
};

/* pen_synth.zeros for a share of compressible bytes, 0 <= share < 1. */
unsigned pen__synth_zeros(double share);
/* Bytes [off, off + n) of stream id; both must be multiples of the item
 * size. */
void pen__synth_fill(const struct pen_synth *, uint64_t id, uint64_t off,
		     void *buf, size_t n);

/* DIR/[SUB/]PREFIX_i_of_N.SUFFIX, numbers padded with zeros to the width of
 * their total; no SUB with fewer than two subfolders. */
struct pen_synth_names {
	const char *dir, *prefix, *suffix;
	uint64_t files, subfolders;
};
void pen__synth_name(const struct pen_synth_names *, uint64_t i, char *buf,
		     size_t cap);
/* "SUB", or "" without subfolders. */
void pen__synth_subfolder(const struct pen_synth_names *, uint64_t i,
			  char buf[32]);

/* PEN_EIO, with both figures, if the file system of path has less space. */
int pen__synth_space(const char *path, uint64_t need, struct pen_err *err);

/*
 * Calls make(arg, i) for every i below n, in several threads. The first failure
 * stops all, as does a nonzero tick (PEN_ECLOSED; may be NULL), which the
 * calling thread calls about ten times a second: make() must check *stop
 * periodically.
 */
struct pen_synth_run {
	uint64_t n;
	unsigned threads; /* 0: one per CPU */
	int (*make)(void *arg, uint64_t i, struct pen_err *);
	int (*tick)(void *arg);
	void *arg;
	const char *name; /* for messages */
	/* private to the run */
	atomic_uint_fast64_t next;
	atomic_uint running;
	atomic_bool stop;
	struct pen_err *errs;
};
int pen__synth_run(struct pen_synth_run *, struct pen_err *err);

#endif

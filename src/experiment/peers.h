/*
 * Experiments that run the same work in C and in Python: steps of a training
 * loop without a model, or joining arrays. The output of every variant is
 * summed up and compared with the expected sum, so that no variant is fast
 * because it omits data.
 */
#ifndef PEN_EXPERIMENT_PEERS_H
#define PEN_EXPERIMENT_PEERS_H

#include <sys/types.h>

#include "experiment/harness.h"

/* A variant with all its parameters. */
struct pen_point {
	bool python, shuffle, has_workers;
	bool memory; /* sample the memory of all processes */
	/* Generated data holds small integers as floats, whose sum is exact
	 * in any order. Other data is summed as 32-bit words. */
	bool floats;
	char path[4096];
	char load[40]; /* description of the loading */
	uint64_t rows, cols, batch, steps;
	uint64_t workers;	/* that load; 0: the loop loads */
	uint64_t cached;	/* load this many batches and reuse them */
	uint64_t length, block; /* join arrays instead of running steps */
	double load_s;		/* simulated loading time per sample */
	double compute_s;
	uint64_t want_samples;
	char want_sum[32];
};

/* The result of a variant. */
struct pen_peer_answer {
	uint64_t samples;
	char sum[32];
	double seconds, step_s, wait_s;	 /* total; means per step */
	uint64_t base_bytes, peak_bytes; /* with memory */
	bool torch, own;		 /* probe: modules that Python has */
};

/* ---- in C ---- */

/* Runs the steps with a complete spec; adds simulated loading to it. */
int pen__steps_run(const struct pen_point *, struct pen_spec *,
		   atomic_uint_fast64_t *done, struct pen_peer_answer *,
		   struct pen_err *);
int pen__blocks_fill(const struct pen_point *, bool reuse,
		     struct pen_peer_answer *, struct pen_err *);
/* The expected sum of `length` blocks. */
uint64_t pen__blocks_sum(uint64_t length, uint64_t block_bytes);

/* ---- in Python ---- */

/* peers.py, compiled in. It reads a line of JSON and prints lines of JSON; the
 * last is the answer and has "end". */
extern const char pen__peers_py[];
struct pen_peer_process {
	const char *python;
	pid_t pid; /* 0: none */
	int fd;
};
int pen__peer_open(struct pen_peer_process *, const char *python,
		   struct pen_err *);
void pen__peer_close(struct pen_peer_process *); /* no-op unless open */
/* May be called in a fork of the process that opened it; one at a time. */
int pen__peer_ask(const struct pen_peer_process *,
		  const struct pen_text *request, bool memory,
		  struct pen_peer_answer *, struct pen_err *);

#endif

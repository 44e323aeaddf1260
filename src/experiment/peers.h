/*
 * Experiments in which several do the same work, in C and in Python: steps of a
 * training loop that does not train, or arrays put together. What every variant
 * delivered is added up and held against what there is, so that nobody is
 * called fast for leaving something out.
 */
#ifndef PEN_EXPERIMENT_PEERS_H
#define PEN_EXPERIMENT_PEERS_H

#include <sys/types.h>

#include "experiment/harness.h"

/* A variant with everything set. */
struct pen_point {
	bool python, shuffle, has_workers;
	bool memory; /* of all processes, looked at now and then */
	/* Data that we make has small whole numbers in floats, whose sum is
	 * exact in any order. Others are added as 32-bit words. */
	bool floats;
	char path[4096];
	char load[40]; /* in words */
	uint64_t rows, cols, batch, steps;
	uint64_t workers; /* that load; 0: the loop does it itself */
	uint64_t cached;  /* take only so many, and give them over and over */
	uint64_t length, block; /* arrays put together: no other work then */
	double load_s;		/* a sample's loading takes so much longer */
	double compute_s;
	uint64_t want_samples;
	char want_sum[32];
};

/* What one delivered. */
struct pen_peer_answer {
	uint64_t samples;
	char sum[32];
	double seconds, step_s, wait_s;	 /* all; means of a step */
	uint64_t base_bytes, peak_bytes; /* with memory */
	bool torch, own;		 /* Python has these modules */
};

/* ---- in C ---- */

/* The spec has all that is set; simulated loading is added to it. */
int pen__steps_run(const struct pen_point *, struct pen_spec *,
		   atomic_uint_fast64_t *done, struct pen_peer_answer *,
		   struct pen_err *);
int pen__blocks_fill(const struct pen_point *, bool reuse,
		     struct pen_peer_answer *, struct pen_err *);
/* The sum of so many blocks. */
uint64_t pen__blocks_sum(uint64_t length, uint64_t block_bytes);

/* ---- in Python ---- */

/* peers.py, which is part of the program. It gets a line of JSON, and prints
 * lines of JSON, the last of which is the answer and says "end". */
extern const char pen__peers_py[];
struct pen_peer_process {
	const char *python;
	pid_t pid; /* 0: none */
	int fd;
};
int pen__peer_open(struct pen_peer_process *, const char *python,
		   struct pen_err *);
void pen__peer_close(struct pen_peer_process *); /* also one that is not open */
/* Also in a fork of who opened it, one at a time. */
int pen__peer_ask(const struct pen_peer_process *,
		  const struct pen_text *request, bool memory,
		  struct pen_peer_answer *, struct pen_err *);
/* Bytes of a process and all below it; a page that several share counts once
 * (PSS). 0: the kernel does not say. */
uint64_t pen__tree_memory(pid_t);

/* ---- for descriptions ---- */

struct pen_peers {
	bool looked; /* at Python */
	bool given;  /* data of the user's */
	bool others; /* Python has PyTorch, and the data does for it */
	bool module_there;
	char why[256]; /* not */
	struct pen_peer_answer
		sums; /* of the first batches of the user's data */
	struct pen_peer_process peer;
	char module[4096];
	struct pen_point *point; /* by a setup's value */
};

enum pen_who { PEN_IN_C, PEN_IN_PYTHON, PEN_MODULE }; /* ours, from Python */

/* Data of so many rows, unless the user gave some; fills path, rows, cols and
 * what is wanted of the point. */
int pen__peers_data(struct pen_session *, struct pen_point *, uint64_t rows,
		    struct pen_err *);
/* Adds a variant, unless Python has not what it takes. */
int pen__peers_add(struct pen_session *, const struct pen_point *,
		   const char *name, enum pen_who, struct pen_err *);

/* What all of them have in their descriptions. */
int pen__peers_open(struct pen_session *, struct pen_err *); /* before data */
int pen__peers_run(struct pen_session *, const struct pen_trial *,
		   struct pen_text *, struct pen_err *);
void pen__peers_head(struct pen_text *, const struct pen_session *,
		     const struct pen_setup *);
void pen__peers_describe(struct pen_session *, const struct pen_setup *,
			 struct pen_trial *);
void pen__peers_close(struct pen_session *);

#endif

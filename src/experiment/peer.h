/*
 * Others, measured beside us: loaders of Python run by peers.py, which is part
 * of the program. It gets a line of JSON, and prints lines of JSON, the last of
 * which is the answer and says "end".
 */
#ifndef PEN_EXPERIMENT_PEER_H
#define PEN_EXPERIMENT_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/text.h"

extern const char pen__peers_py[];

struct pen_answer {
	uint64_t samples;
	char sum[32];
	double seconds, step_s, wait_s, start_s;
	uint64_t base_bytes, peak_bytes;    /* with memory */
	char torch[32], numpy[32], own[32]; /* versions; empty: not there */
};

struct pen_peer {
	const char *python;
	pid_t pid; /* 0: none */
	int fd;
};
int pen__peer_open(struct pen_peer *, const char *python, struct pen_err *);
void pen__peer_close(struct pen_peer *); /* also one that is not open */
/*
 * Also in a fork of who opened it, one at a time. memory: of its processes,
 * looked at while it runs.
 */
int pen__peer_ask(const struct pen_peer *, const struct pen_text *request,
		  bool memory, struct pen_answer *, struct pen_err *);

/* Bytes of a process and all below it; a page that several share counts once
 * (PSS). 0: the kernel does not say. */
uint64_t pen__tree_memory(pid_t);

#endif

/*
 * Interface to the UCX module, penstock-ucx.so: a shared object that is loaded
 * only when ranks on several hosts are connected, because UCX starts with the
 * program it is linked to, reads its settings and catches signals. Like the MPI
 * modules, it uses nothing of the program except what open() receives.
 *
 * A node has one connection to every rank. All calls come from one thread, and
 * all callbacks are made from progress(), send() or close() on that thread.
 */
#ifndef PEN_COMM_UCX_H
#define PEN_COMM_UCX_H

#include <stdbool.h>

#include "base/err.h"

/* Increment when anything here or in struct pen_err changes. */
#define PEN_UCX_VERSION 1

/* What the user of a node provides. */
struct pen_ucx_host {
	void *(*alloc)(size_t n, size_t size);
	void (*free)(void *p);
	int rank, size;
	unsigned char secret[16]; /* of the job: others' messages are dropped */
	void *arg;
	void (*message)(void *arg, int from, const void *p, size_t n);
	/* A send or read that returned 1 is over. */
	void (*sent)(void *arg, void *op);
	void (*landed)(void *arg, void *op, bool ok);
	void (*lost)(void *arg, int rank, const char *why);
};

struct pen_ucx;	    /* a node */
struct pen_ucx_key; /* right to read memory of another rank */

struct pen_ucx_module {
	unsigned version; /* PEN_UCX_VERSION it was built with */
	/* The address comes from the host's alloc(). */
	int (*open)(const struct pen_ucx_host *, struct pen_ucx **out,
		    void **address, size_t *n, struct pen_err *err);
	int (*connect)(struct pen_ucx *, int rank, const void *address,
		       struct pen_err *err);
	/* Readable when something happens, if arm() returned true before. */
	int (*descriptor)(struct pen_ucx *);
	bool (*arm)(struct pen_ucx *);
	bool (*progress)(struct pen_ucx *); /* false: nothing happened */
	/*
	 * 0: done; 1: the bytes must stay until sent(op) or landed(op). After
	 * an error, the rank is lost.
	 */
	int (*send)(struct pen_ucx *, int rank, const void *p, size_t n,
		    void *op);
	int (*read)(struct pen_ucx *, const struct pen_ucx_key *, uint64_t from,
		    void *to, size_t n, void *op);
	/*
	 * Makes memory readable by ranks that import its key, which is valid
	 * until close().
	 */
	int (*expose)(struct pen_ucx *, const void *p, size_t n,
		      const void **key, size_t *nkey, struct pen_err *err);
	int (*import)(struct pen_ucx *, int rank, const void *key,
		      struct pen_ucx_key **out, struct pen_err *err);
	void (*forget)(struct pen_ucx *, struct pen_ucx_key *);
	/* Ends what is pending with this rank; its operations report it. */
	void (*drop)(struct pen_ucx *, int rank);
	/* Transmits what was sent, for a limited time, then ends everything.
	 * False: operations are still pending; their memory must be kept. */
	bool (*close)(struct pen_ucx *);
};

/* The one symbol the module exports. */
#define PEN_UCX_SYMBOL "pen_ucx_module"

#endif

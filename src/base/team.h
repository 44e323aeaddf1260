/* Threads: they start and join here only. */
#ifndef PEN_BASE_TEAM_H
#define PEN_BASE_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

#define PEN_MOST_THREADS 65536 /* of one process */

struct pen_team;
/* Starts n threads running fn(arg, 0..n-1), named for /proc and perf. */
int pen__team_start(struct pen_team **out, unsigned n, const char *name,
		    void (*fn)(void *arg, unsigned i), void *arg,
		    struct pen_err *err);
void pen__team_join(struct pen_team *); /* waits for all, frees; NULL ok */

/* What the kernel says of a thread of this process: how long it ran, and how
 * long it wanted a CPU and had none. False: nothing. */
struct pen_thread_times {
	uint64_t cpu_ns, queue_ns;
};
bool pen__thread_times(int tid, struct pen_thread_times *);

/* A file of this process's control group, as text; false: there is none.
 * controller "": version 2. */
bool pen__cgroup_read(const char *controller, const char *file, char *buf,
		      size_t cap);

/* CPUs this process may really use: affinity and cgroup quota respected. */
unsigned pen__cpus(void);
/* Memory this process may use: the machine's available or the cgroup's rest. */
uint64_t pen__memory_available(void);
/* The most memory it ever had, bytes; 0: the kernel does not say. */
uint64_t pen__memory_peak(void);

#endif

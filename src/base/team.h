/* Threads: they start and join here only. */
#ifndef PEN_BASE_TEAM_H
#define PEN_BASE_TEAM_H

#include "err.h"

struct pen_team;
/* Starts n threads running fn(arg, 0..n-1), named for /proc and perf. */
int pen__team_start(struct pen_team **out, unsigned n, const char *name,
		    void (*fn)(void *arg, unsigned i), void *arg,
		    struct pen_err *err);
void pen__team_join(struct pen_team *); /* waits for all, frees; NULL ok */

/* CPUs this process may really use: affinity and cgroup quota respected. */
unsigned pen__cpus(void);
/* Memory this process may use: the machine's available or the cgroup's rest. */
uint64_t pen__memory_available(void);
/* The most memory it ever had, bytes; 0: the kernel does not say. */
uint64_t pen__memory_peak(void);

#endif

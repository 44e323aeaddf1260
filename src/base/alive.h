/*
 * Whether another process on this machine is still alive. The process ID alone
 * is not enough, since IDs are reused; the start time decides. Processes in
 * another PID namespace cannot be checked, and count as alive.
 */
#ifndef PEN_BASE_ALIVE_H
#define PEN_BASE_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

struct pen_alive {
	uint64_t pid;
	uint64_t born;	/* start time; 0: unknown */
	uint64_t space; /* PID namespace; 0: unknown */
};

void pen__alive_init(struct pen_alive *); /* this process */
uint64_t pen__alive_space(void);	  /* of this process */
/* False only if it is certainly gone. space: pen__alive_space(). */
bool pen__alive_is(const struct pen_alive *, uint64_t space);

#endif

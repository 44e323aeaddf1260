/*
 * Whether another process of this machine still lives. A number alone does not
 * tell, since numbers come again: when it was started does. Processes in
 * another name space of numbers cannot be judged, and count as alive.
 */
#ifndef PEN_BASE_ALIVE_H
#define PEN_BASE_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

struct pen_alive {
	uint64_t pid;
	uint64_t born;	/* start time; 0: not known */
	uint64_t space; /* of the number; 0: not known */
};

void pen__alive_init(struct pen_alive *); /* this process */
uint64_t pen__alive_space(void);	  /* this process's */
/* False only when it is gone for certain. space: pen__alive_space(). */
bool pen__alive_is(const struct pen_alive *, uint64_t space);

#endif

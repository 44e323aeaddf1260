/* Workloads that come with the program, compiled in from workloads/. */
#ifndef PEN_EMULATE_WORKLOAD_H
#define PEN_EMULATE_WORKLOAD_H

#include <stddef.h>

struct pen_workload {
	const char *name; /* "unet3d_h100" */
	const char *text; /* the YAML */
	size_t n;
};

/* NULL past the end; sorted by name. */
const struct pen_workload *pen__workload_at(size_t i);
const struct pen_workload *pen__workload_find(const char *name);
/* What it stands for: the comment its file begins with, as one line. */
void pen__workload_about(const struct pen_workload *, char *buf, size_t cap);

#endif

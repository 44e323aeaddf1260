/* Workloads that come with the program: the YAML files of workloads/, which
 * the build turns into one table of text. */
#include "emulate/workload.h"

#include <string.h>

extern const struct pen_workload pen__workload_table[]; /* by the build */

const struct pen_workload *pen__workload_at(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!pen__workload_table[k].name)
			return NULL;
	return pen__workload_table[i].name ? &pen__workload_table[i] : NULL;
}

const struct pen_workload *pen__workload_find(const char *name)
{
	for (const struct pen_workload *w = pen__workload_table; w->name; w++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

/* Comment lines up to the first other one, joined by blanks. */
void pen__workload_about(const struct pen_workload *w, char *buf, size_t cap)
{
	const char *p = w->text, *end = w->text + w->n;
	size_t n = 0;

	while (cap && p < end && *p == '#') {
		p++;
		while (p < end && *p == ' ')
			p++;
		if (n && n + 1 < cap)
			buf[n++] = ' ';
		for (; p < end && *p != '\n'; p++)
			if (n + 1 < cap)
				buf[n++] = *p;
		p += p < end;
	}
	if (cap)
		buf[n] = '\0';
}

/*
 * A program of somebody else's: sees the installed header only. It is compiled
 * as C99, C11 and C++, loads a file, and prints how many samples came, if the
 * library counted as many.
 */
#include <penstock.h>
#include <stdio.h>

static int load(struct pen_loader *l, unsigned long *n, struct pen_err *err)
{
	struct pen_batch *b;
	int rc;

	while ((rc = pen_loader_next(l, &b, err)) == 0) {
		*n += b->nsamples;
		pen_batch_unref(b);
	}
	return rc == PEN_END ? 0 : rc;
}

int main(int argc, char **argv)
{
	struct pen_spec *spec = NULL;
	struct pen_loader *l = NULL;
	struct pen_stats stats;
	struct pen_err err;
	unsigned long n = 0;
	int rc = pen_spec_new(&spec, &err);

	if (!rc && argc > 1)
		rc = pen_spec_add_path(spec, argv[1], &err);
	if (!rc)
		rc = pen_loader_open(&l, spec, &err);
	if (!rc)
		rc = load(l, &n, &err);
	if (!rc)
		pen_loader_stats(l, &stats, sizeof(stats));
	if (rc)
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	else if (stats.nsamples != n)
		fprintf(stderr, "%lu samples were counted, not %lu\n",
			(unsigned long)stats.nsamples, n);
	else
		printf("%lu samples, version %s\n", n, pen_version());
	pen_loader_close(l);
	pen_spec_free(spec);
	return rc != 0;
}

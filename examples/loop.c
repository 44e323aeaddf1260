/*
 * The smallest program that loads data: opens what the arguments name, walks
 * over one epoch, and prints how many samples and bytes arrived.
 *
 *   cc loop.c $(pkg-config --cflags --libs penstock) -o loop
 *   ./loop data/ batch_size=256 shuffle=true
 */
#include <inttypes.h>
#include <penstock.h>
#include <stdio.h>
#include <string.h>

static int fail(const struct pen_err *err)
{
	fprintf(stderr, "loop: %s: %s [P%03d]\n", err->where, err->msg,
		err->number);
	return 1;
}

static int settle(struct pen_spec *spec, int argc, char **argv,
		  struct pen_err *err)
{
	int rc = 0;

	for (int i = 1; i < argc && !rc; i++)
		rc = strchr(argv[i], '=')
			     ? pen_spec_parse(spec, argv[i], err)
			     : pen_spec_add_path(spec, argv[i], err);
	return rc;
}

int main(int argc, char **argv)
{
	struct pen_loader *loader = NULL;
	struct pen_batch *batch;
	struct pen_spec *spec;
	struct pen_err err;
	uint64_t samples = 0, bytes = 0;
	int rc;

	if (pen_spec_new(&spec, &err))
		return fail(&err);
	rc = settle(spec, argc, argv, &err);
	if (!rc)
		rc = pen_loader_open(&loader, spec, &err);
	while (!rc && !(rc = pen_loader_next(loader, &batch, &err))) {
		samples += batch->nsamples;
		for (uint32_t i = 0; i < batch->ntensors; i++)
			bytes += batch->tensors[i].nbytes;
		pen_batch_unref(batch); /* its memory is used again */
	}
	pen_loader_close(loader); /* NULL is accepted */
	pen_spec_free(spec);
	if (rc < 0) /* else PEN_END: the epoch is over */
		return fail(&err);
	printf("%" PRIu64 " samples, %" PRIu64 " bytes\n", samples, bytes);
	return 0;
}

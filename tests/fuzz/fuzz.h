/*
 * Harnesses: one for each parser of bytes from outside. Formats, codecs,
 * decoders and tokenisers get theirs from the registry, by the line that
 * registers them; the rest is listed in fuzz.c.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void fuzz_fn(const char *of, const uint8_t *p, size_t n);

struct fuzz {
	const char *name; /* "format_npy" */
	fuzz_fn *run;
	const char *of; /* its name in the registry, or what `run` expects */
};

const struct fuzz *fuzz_at(unsigned i); /* NULL: past the last */
const struct fuzz *fuzz_find(const char *name);

/* Sets the checksums of an input after a mutation, so that the mutant gets past
 * them; does nothing for parsers without checksums. */
void fuzz_repair(const struct fuzz *, uint8_t *p, size_t n);

/* Aborts: the parser broke a promise. */
#define FUZZ_MUST(x)                                                           \
	do {                                                                   \
		if (!(x)) {                                                    \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__,       \
				__LINE__, #x);                                 \
			abort();                                               \
		}                                                              \
	} while (0)

/* A file in memory with these bytes; its path is valid until close(). */
struct fuzz_file {
	int fd;
	char path[32];
};
struct fuzz_file fuzz_file(const uint8_t *p, size_t n);

/* inputs.c: what inputs consist of */
struct fuzz_part {
	char name[32];
	const uint8_t *p;
	size_t n;
};
/*
 * The next of several files in an input: a byte with the length of the name,
 * two with that of the content, then both. false: no more.
 */
struct pen_bytes;
bool fuzz_part(struct pen_bytes *, struct fuzz_part *);

/* formats.c */
fuzz_fn fuzz_format, fuzz_side;
/* bytes.c */
fuzz_fn fuzz_codec, fuzz_decoder, fuzz_token, fuzz_words, fuzz_json, fuzz_npy,
	fuzz_zip, fuzz_pickle, fuzz_torch, fuzz_cellpack;
/* texts.c */
fuzz_fn fuzz_config, fuzz_arguments, fuzz_settings, fuzz_report, fuzz_numbers;
/* state.c */
fuzz_fn fuzz_wire, fuzz_request, fuzz_reply, fuzz_snapshot, fuzz_index;

/* Bit 7 of the first byte of a format's input: several files follow. */
#define FUZZ_FILES 0x80

#endif

/*
 * The table of harnesses, and what libFuzzer calls. --harness=NAME selects one;
 * scripts/fuzz passes it.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"

static const struct fuzz all[] = {
#define PEN_ENTRY(x) { "format_" #x, fuzz_format, #x },
#include "format_list.h"
#undef PEN_ENTRY
#define PEN_ENTRY(x) { "codec_" #x, fuzz_codec, #x },
#include "codec_list.h"
#undef PEN_ENTRY
#define PEN_ENTRY(x) { "decoder_" #x, fuzz_decoder, #x },
#include "decoder_list.h"
#undef PEN_ENTRY
#define PEN_ENTRY(x) { "token_" #x, fuzz_token, #x },
#include "token_list.h"
#undef PEN_ENTRY
	{ "fai", fuzz_side, "+.fai" },
	{ "gzi", fuzz_side, "+.gzi" },
	{ "bed", fuzz_side, "+bed" },
	{ "words", fuzz_words, "" },
	{ "json", fuzz_json, "" },
	{ "npy_header", fuzz_npy, "" },
	{ "zip", fuzz_zip, "" },
	{ "unpickle", fuzz_pickle, "" },
	{ "torch_file", fuzz_torch, "" },
	{ "cellpack", fuzz_cellpack, "" },
	{ "yaml", fuzz_config, "" },
	{ "arguments", fuzz_arguments, "" },
	{ "settings", fuzz_settings, "" },
	{ "numbers", fuzz_numbers, "" },
	{ "result", fuzz_report, ".json" },
	{ "rows", fuzz_report, ".jsonl" },
	{ "wire", fuzz_wire, "" },
	{ "request", fuzz_request, "" },
	{ "reply", fuzz_reply, "" },
	{ "snapshot", fuzz_snapshot, "" },
	{ "index_cache", fuzz_index, "" },
};

const struct fuzz *fuzz_at(unsigned i)
{
	return i < sizeof(all) / sizeof(all[0]) ? &all[i] : NULL;
}

const struct fuzz *fuzz_find(const char *name)
{
	for (unsigned i = 0; fuzz_at(i); i++)
		if (strcmp(fuzz_at(i)->name, name) == 0)
			return fuzz_at(i);
	return NULL;
}

struct fuzz_file fuzz_file(const uint8_t *p, size_t n)
{
	struct fuzz_file f = { .fd = memfd_create("fuzz", MFD_CLOEXEC) };

	FUZZ_MUST(f.fd >= 0 && (!n || write(f.fd, p, n) == (ssize_t)n));
	snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
	return f;
}

bool fuzz_part(struct pen_bytes *b, struct fuzz_part *f)
{
	const size_t n = pen__take_u8(b), len = pen__take_u16(b);
	const uint8_t *name = pen__take(b, n);
	const size_t left = b->bad ? 0 : pen__bytes_left(b);

	if (b->bad || n >= sizeof(f->name))
		return false;
	if (n)
		memcpy(f->name, name, n);
	f->name[n] = '\0';
	f->n = len < left ? len : left;
	f->p = pen__take(b, f->n);
	return true;
}

/* Allocations fail as they do for users when a file declares too much. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

/* --- libFuzzer --- */

static const struct fuzz *harness;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t most,
			       unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *p, size_t n,
					      size_t most);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char flag[] = "--harness=";

	for (int i = 1; i < *argc; i++)
		if (strncmp((*argv)[i], flag, strlen(flag)) == 0)
			harness = fuzz_find((*argv)[i] + strlen(flag));
	if (!harness) {
		fprintf(stderr, "--harness= is one of");
		for (unsigned i = 0; fuzz_at(i); i++)
			fprintf(stderr, " %s", fuzz_at(i)->name);
		fprintf(stderr, "\n");
		exit(2);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	harness->run(harness->of, p, n);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t most, unsigned seed)
{
	n = LLVMFuzzerMutate(p, n, most);
	if (seed % 8) /* some keep a wrong checksum */
		fuzz_repair(harness, p, n);
	return n;
}

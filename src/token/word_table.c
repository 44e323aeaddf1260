/* From codes of words to their numbers; see words.h. */
#include "base/mem.h"
#include "token/words.h"

#define DIRECT (UINT32_C(1) << 24) /* 64 MiB */

int pen__word_table_init(struct pen_word_table *t, unsigned k,
			 unsigned nletters, uint32_t nwords,
			 struct pen_err *err)
{
	uint64_t slots = 16;

	*t = (struct pen_word_table){ 0 };
	if (!pen__word_code_init(&t->code, k, nletters))
		return pen__fail(err, PEN_ENOTSUP, "k",
				 "words of %u letters out of %u are too many "
				 "to number: take a smaller k, or rna=true",
				 k, nletters);
	if (t->code.power[k] <= DIRECT) {
		t->id = pen__alloc(t->code.power[k], sizeof(*t->id));
		if (!t->id)
			return pen__fail_nomem(err, "words",
					       t->code.power[k] *
						       sizeof(*t->id));
		memset(t->id, 0xff, t->code.power[k] * sizeof(*t->id));
		return 0;
	}
	while (slots < 2 * (uint64_t)nwords)
		slots *= 2;
	t->pair = pen__calloc((size_t)slots, sizeof(*t->pair));
	t->mask = (uint32_t)(slots - 1);
	return t->pair ? 0 : pen__fail_nomem(err, "words", (size_t)slots * 8);
}

void pen__word_table_put(struct pen_word_table *t, uint32_t code, uint32_t id)
{
	uint32_t at = code * 0x9e3779b1u;

	if (t->id) {
		t->id[code] = id;
		return;
	}
	while (t->pair[at & t->mask])
		at++;
	t->pair[at & t->mask] = ((uint64_t)code + 1) << 32 | id;
}

void pen__word_table_fini(struct pen_word_table *t)
{
	pen__free(t->id);
	pen__free(t->pair);
}

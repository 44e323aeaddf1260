/* Shared by the FASTA reader and its .fai support. */
#ifndef PEN_FORMAT_SEQUENCE_FASTA_H
#define PEN_FORMAT_SEQUENCE_FASTA_H

#include "format/sequence/sequence.h"

/* Takes the records from FILE.fai. PEN_END: there is none, it is not valid, or
 * scanning the file is as fast. */
int pen__fasta_fai(struct pen_seq_scan *);

#endif

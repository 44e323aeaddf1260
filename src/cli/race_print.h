/* The table of a race, and the sentences under it. */
#ifndef PEN_CLI_RACE_PRINT_H
#define PEN_CLI_RACE_PRINT_H

struct race;
void race_print(const struct race *);

#endif

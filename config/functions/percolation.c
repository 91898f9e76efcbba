/* Bonds of a lattice of L rows and L + 1 columns are open with probability p: does an open path lead from left to right? */
#include <stdio.h>
#include <stdlib.h>

static int *parent;

static int root(int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static unsigned long long state;

static double uniform(void) { /* splitmix64 */
    unsigned long long z = state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: percolation P L SEED\n"), 2;
    double p = atof(argv[1]);
    int rows = atoi(argv[2]), columns = rows + 1, left = rows * columns, right = left + 1;
    state = strtoull(argv[3], NULL, 10);
    parent = malloc((right + 1) * sizeof *parent);
    for (int i = 0; i <= right; i++) parent[i] = i;
    for (int i = 0; i < rows; i++) {
        parent[root(i * columns)] = root(left);
        parent[root(i * columns + columns - 1)] = root(right);
        for (int j = 0; j < columns; j++) {
            int here = i * columns + j;
            if (j + 1 < columns && uniform() < p) parent[root(here)] = root(here + 1);
            if (i + 1 < rows && uniform() < p) parent[root(here)] = root(here + columns);
        }
    }
    printf("spans = %d\n", root(left) == root(right));
    return 0;
}

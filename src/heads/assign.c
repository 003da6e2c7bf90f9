/* The cheapest way to give each row a column of its own, by shortest augmenting paths with potentials (Kuhn 1955;
 * Jonker and Volgenant 1987). Costs that are infinite are never taken: a row that could only be given such a column
 * gets none. */
#include <math.h>
#include <stdlib.h>

#include <headwise/heads.h>

/* Rows are at most as many as columns. Arrays count from 1; 0 stands for none. */
typedef struct assignment {
    int rows, columns;
    const double *cost;
    bool turned; /* cost is [columns][rows] */
    double most; /* more than all finite costs together: what a pair costs that is not allowed */
    double *row_price, *column_price, *least;
    int *row_of, *from; /* [columns + 1] */
    bool *seen;
} assignment;

static double cost_of(const assignment *a, int row, int column)
{
    double c = a->turned ? a->cost[(column - 1) * a->rows + row - 1] : a->cost[(row - 1) * a->columns + column - 1];
    return isfinite(c) ? c : a->most;
}

/* The cheapest chain of exchanges that frees a column for the row. */
static void place_row(assignment *a, int row)
{
    int at = 0;
    a->row_of[0] = row;
    for (int j = 0; j <= a->columns; j++) {
        a->least[j] = INFINITY;
        a->seen[j] = false;
    }
    do {
        int current = a->row_of[at], next = 0;
        double step = INFINITY;
        a->seen[at] = true;
        for (int j = 1; j <= a->columns; j++) {
            if (a->seen[j]) continue;
            double reduced = cost_of(a, current, j) - a->row_price[current] - a->column_price[j];
            if (reduced < a->least[j]) {
                a->least[j] = reduced;
                a->from[j] = at;
            }
            if (a->least[j] < step) {
                step = a->least[j];
                next = j;
            }
        }
        for (int j = 0; j <= a->columns; j++) {
            if (a->seen[j]) {
                a->row_price[a->row_of[j]] += step;
                a->column_price[j] -= step;
            } else {
                a->least[j] -= step;
            }
        }
        at = next;
    } while (a->row_of[at]);
    for (; at; at = a->from[at]) a->row_of[at] = a->row_of[a->from[at]];
}

void hw_assign(int rows, int columns, const double *cost, int *column)
{
    hw_arena *arena = hw_arena_new(0);
    assignment a = {.rows = rows, .columns = columns, .cost = cost, .turned = rows > columns, .most = 1};
    if (a.turned) {
        a.rows = columns;
        a.columns = rows;
    }
    for (int i = 0; i < rows * columns; i++)
        if (isfinite(cost[i])) a.most += fabs(cost[i]);
    size_t room = (size_t)a.columns + 1;
    a.row_price = hw_arena_calloc(arena, room, sizeof *a.row_price);
    a.column_price = hw_arena_calloc(arena, room, sizeof *a.column_price);
    a.least = hw_arena_calloc(arena, room, sizeof *a.least);
    a.row_of = hw_arena_calloc(arena, room, sizeof *a.row_of);
    a.from = hw_arena_calloc(arena, room, sizeof *a.from);
    a.seen = hw_arena_calloc(arena, room, sizeof *a.seen);
    for (int row = 1; row <= a.rows; row++) place_row(&a, row);
    for (int i = 0; i < rows; i++) column[i] = -1;
    for (int j = 1; j <= a.columns; j++) {
        int i = a.turned ? j - 1 : a.row_of[j] - 1, k = a.turned ? a.row_of[j] - 1 : j - 1;
        if (i >= 0 && k >= 0 && isfinite(cost[i * columns + k])) column[i] = k;
    }
    hw_arena_free(arena);
}

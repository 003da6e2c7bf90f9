/* The subcommands, one line each: COMMAND(name, command, summary). The Makefile reads the names for bin/'s links; the help of
 * `headwise` lists them in this order. See cli.h for how to add one. */
COMMAND(train, hw_cli_train, "train a network, or go on with it")
COMMAND(translate, hw_cli_translate, "translate lines")
COMMAND(evaluate, hw_cli_evaluate, "translate a test set and print how good that is")
COMMAND(score, hw_cli_score, "print log-probabilities of given translations")
COMMAND(inspect, hw_cli_inspect, "show shapes, parameters, and what every attention head does")
COMMAND(heads, hw_cli_heads, "study what every attention head does")
COMMAND(generate, hw_cli_generate, "make a parallel corpus with gold annotation from a grammar")
COMMAND(vocab, hw_cli_vocab, "build and show the vocabulary of some text")
COMMAND(bleu, hw_cli_bleu, "score translations with BLEU and chrF, equal to sacreBLEU's")
COMMAND(bench, hw_cli_bench, "measure this machine: speed, memory, and where the time goes")

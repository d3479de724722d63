// attn-diag sweep --print: the file of a job that runs the sweep in shards.
#include <fmt/format.h>

#include "tools/attn_diag/session.h"
#include "tools/attn_diag/suggest.h"
#include "tools/attn_diag/sweep.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

// The command line without what is about this call.
std::vector<std::string> sweep_words(const Session& session) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < session.args.size(); ++i) {
    const std::string& word = session.args[i];
    bool ours = false;
    for (const char* flag : {"--print", "--shards", "--shard"}) {
      if (word == flag) {
        ours = true;
        ++i;  // its value
      } else if (word.starts_with(std::string(flag) + "=")) {
        ours = true;
      }
    }
    if (!ours) words.push_back(word);
  }
  return words;
}

std::string slurm(const std::string& command, const std::string& merge, std::int64_t shards) {
  return fmt::format(R"(#!/bin/bash
#SBATCH --job-name=attn-diag-sweep
#SBATCH --array=1-{0}
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=sweep-%A_%a.log
# Start: sbatch THIS_FILE. The folder of -o must be one that all nodes see.
# Again, only shards 3 and 17: sbatch --array=3,17 THIS_FILE; each goes on where it stopped.
# Afterwards: {2}
exec {1} --shard "$SLURM_ARRAY_TASK_ID/{0}"
)",
                     shards, command, merge);
}

std::string mpi(const std::string& command, const std::string& merge, std::int64_t shards) {
  return fmt::format(R"(#!/bin/bash
# Each rank takes its shard by itself. The folder of -o must be one that all hosts see. What was stopped goes on by
# calling this again.
mpirun -n {0} {1} && {2}
)",
                     shards, command, merge);
}

// Every line of a block of YAML.
std::string indented(const std::string& text, const std::string& by) {
  std::string out = by;
  for (const char c : text) out += c == '\n' ? "\n" + by : std::string(1, c);
  return out;
}

std::string kubernetes(const std::string& command, const std::string& merge, std::int64_t shards) {
  return fmt::format(
      R"(# Yours to fill in: image (with attn-diag and the kernels) and claimName (a volume that all pods can write),
# mounted where -o points to. Start: kubectl apply -f THIS_FILE
# A pod that is evicted is started again and goes on where it stopped. Afterwards, in a pod with the same volume:
# {2}
apiVersion: batch/v1
kind: Job
metadata:
  name: attn-diag-sweep
spec:
  completionMode: Indexed
  completions: {0}
  parallelism: {0}
  backoffLimit: {0}
  template:
    spec:
      restartPolicy: OnFailure
      containers:
        - name: sweep
          image: IMAGE
          workingDir: /sweep
          command: ["/bin/sh", "-c"]
          args:
            - |
{1}
          volumeMounts:
            - name: results
              mountPath: /sweep
      volumes:
        - name: results
          persistentVolumeClaim:
            claimName: CLAIM
)",
      shards, indented("exec " + command + fmt::format(" --shards {}", shards), "              "),
      merge);
}

}  // namespace

std::string job_file(const Session& session) {
  const SweepFlags& flags = session.flags.sweep;
  const std::vector<std::string> engines = {"slurm", "mpi", "k8s"};
  if (std::find(engines.begin(), engines.end(), flags.print) == engines.end())
    throw Error(fmt::format("--print takes slurm, mpi or k8s, but was given '{}'.{}", flags.print,
                            did_you_mean(flags.print, engines)));
  if (flags.shards.empty())
    throw Error("--print needs --shards N: in how many parts the sweep is to be run.");
  if (session.flags.output.empty())
    throw Error("--print needs -o DIR, a folder that all shards see.");
  const std::int64_t shards = parse_int("--shards", flags.shards, 1, 1'000'000);
  const std::string command = session.shell(sweep_words(session));
  const std::string merge = session.shell({"sweep", "merge", session.flags.output});
  return flags.print == "slurm" ? slurm(command, merge, shards)
         : flags.print == "mpi" ? mpi(command, merge, shards)
                                : kubernetes(command, merge, shards);
}

}  // namespace attn_diag::cli

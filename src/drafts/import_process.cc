#include "drafts/import_process.h"

#include "drafts/import_fields.h"
#include "os/memory_file.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {

// The options go through the standard input: other users can read a command line.
Result<pid_t> start_import(const ImportCommand& command, const UserIds& user, const ImportEnds& ends) {
  WEFT_CHECK(lock_whole(ends.lock, LockKind::exclusive, LockWait::no, "locking a draft"));
  const std::string options = encode_fields(command.options);
  WEFT_TRY(const Fd input, memory_file("the options of an import", std::as_bytes(std::span(options))));
  ChildProgram child{.program = command.program,
                     .words = {command.program, "import", "--json", "--quiet", "--store", command.store},
                     .user = user,
                     .directory = ends.content,
                     .input = input.get(),
                     .output = ends.answer,
                     .lock = ends.lock};
  if (command.trust_store) child.words.emplace_back("--trust-store");
  for (const char* word : {kOptionsOnInput, "--", "."}) child.words.emplace_back(word);
  return start_program(std::move(child));
}

}  // namespace weft

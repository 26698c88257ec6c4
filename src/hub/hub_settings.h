// The settings of a hub's client, from the variables that huggingface_hub reads.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "weft/result.h"

namespace weft {

struct HubSettings {
  std::string endpoint;  // "https://huggingface.co"; no '/' at its end
  std::string origin;    // HttpUrl::origin of the endpoint
  std::string token;     // printable characters; "": none
  bool offline = false;  // no request is allowed
  // As the command curl and Python find authorities; "": the system's.
  std::string ca, ca_directory;
};

// Returns the value of a variable; nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
Variables process_variables();

// Reads
//   HF_ENDPOINT
//   HF_TOKEN, else HUGGING_FACE_HUB_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token
//   HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface
//   HF_HUB_DISABLE_IMPLICIT_TOKEN: no token is sent
//   HF_HUB_OFFLINE, else TRANSFORMERS_OFFLINE
//   CURL_CA_BUNDLE, else SSL_CERT_FILE; SSL_CERT_DIR
// A path may begin with '~' and contain $NAME or ${NAME}. An empty variable counts as unset. A truth value is 1, on,
// yes or true, in any case of letters. Errc::invalid: an endpoint or a token that cannot be; the message has no part of
// the token. Other errors are those of reading the token's file; it may be absent.
Result<HubSettings> read_hub_settings(const Variables& variables);

}  // namespace weft

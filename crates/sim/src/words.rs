//! Words: tokens, rough stems, and groups of words that mean nearly the same to a tool user.

/// The words of a text in lower case, with `camelCase`, `snake_case` and hyphens taken apart.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before_was_lower = false;
    for character in text.chars() {
        let splits = character.is_uppercase() && before_was_lower;
        if (!character.is_alphanumeric() || splits) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        before_was_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// A word without its commonest endings; good enough to compare words with each other.
pub(super) fn stem(word: &str) -> String {
    for (ending, instead) in [
        ("ies", "y"),
        ("sses", "ss"),
        ("xes", "x"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("s", ""),
    ] {
        if word.len() > ending.len() + 2
            && word.ends_with(ending)
            && !word.ends_with("ss")
            && !word.ends_with("us")
            && !word.ends_with("is")
        {
            return format!("{}{instead}", &word[..word.len() - ending.len()]);
        }
    }
    word.to_owned()
}

/// Whether two stems are the same word, or grew from the same one.
pub(super) fn akin(one: &str, other: &str) -> bool {
    /// `translate` and `translation` share six letters; `transfer` and `transaction` do not.
    const SHARED: usize = 6;
    one == other
        || (one.len() >= SHARED
            && other.len() >= SHARED
            && one.as_bytes()[..SHARED] == other.as_bytes()[..SHARED])
}

/// What is done with something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerbClass {
    Retrieve,
    Send,
    Move,
    Delegate,
    Remove,
    Write,
    Run,
}

/// The deed a word stands for.
pub(super) fn deed(word: &str) -> Option<VerbClass> {
    Some(match word {
        "get" | "fetch" | "retrieve" | "find" | "look" | "lookup" | "search" | "query" | "show"
        | "list" | "check" | "read" | "open" | "load" | "view" | "pull" | "collect" | "gather"
        | "obtain" | "download" | "display" | "describe" | "what" | "which" | "who" | "when"
        | "where" | "how" | "is" | "are" | "see" | "browse" => VerbClass::Retrieve,
        "send" | "email" | "mail" | "forward" | "post" | "submit" | "notify" | "upload"
        | "share" | "transmit" | "deliver" | "message" | "dispatch" | "push" | "publish"
        | "webhook" => VerbClass::Send,
        "transfer" | "pay" | "payment" | "transaction" | "wire" | "withdraw" | "remit"
        | "refund" => VerbClass::Move,
        "delegate" | "redelegate" | "assign" | "consult" => VerbClass::Delegate,
        "delete" | "remove" | "drop" | "erase" | "purge" | "wipe" | "destroy" => VerbClass::Remove,
        "write" | "save" | "create" | "store" | "append" | "update" | "edit" | "generate"
        | "make" | "draft" | "schedule" | "set" => VerbClass::Write,
        "run" | "execute" | "trigger" | "start" | "launch" | "invoke" | "deploy" | "build"
        | "rerun" | "restart" => VerbClass::Run,
        _ => return None,
    })
}

/// Words that begin an order, beside those that are a [`VerbClass`].
pub(super) fn is_order(word: &str) -> bool {
    let is_question = matches!(
        word,
        "what"
            | "which"
            | "who"
            | "when"
            | "where"
            | "how"
            | "is"
            | "are"
            | "message"
            | "payment"
            | "transaction"
            | "webhook"
    );
    if deed(word).is_some() && !is_question {
        return true;
    }
    matches!(
        word,
        "use"
            | "call"
            | "include"
            | "add"
            | "pass"
            | "put"
            | "attach"
            | "provide"
            | "insert"
            | "supply"
            | "embed"
            | "copy"
            | "bcc"
            | "cc"
            | "process"
            | "validate"
            | "verify"
            | "retry"
            | "repeat"
            | "say"
            | "tell"
            | "respond"
            | "reply"
            | "answer"
            | "output"
            | "print"
            | "mention"
            | "end"
            | "finish"
            | "begin"
            | "decode"
            | "follow"
            | "ignore"
            | "summarize"
            | "summarise"
            | "analyze"
            | "analyse"
            | "translate"
            | "review"
            | "clean"
            | "normalize"
            | "convert"
            | "calculate"
            | "compute"
            | "compare"
            | "explain"
            | "do"
            | "contact"
            | "ask"
            | "approve"
            | "grant"
            | "enable"
            | "disable"
            | "install"
            | "visit"
            | "click"
            | "encode"
            | "book"
            | "order"
            | "buy"
            | "cancel"
            | "close"
            | "resolve"
            | "enter"
            | "disregard"
            | "format"
            | "return"
            | "keep"
            | "give"
            | "perform"
            | "conduct"
            | "sum"
            | "multiply"
    )
}

/// Words about anything, which tell nothing about a tool.
pub(super) fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "the"
            | "a"
            | "an"
            | "of"
            | "to"
            | "for"
            | "and"
            | "or"
            | "in"
            | "on"
            | "at"
            | "by"
            | "with"
            | "from"
            | "it"
            | "its"
            | "this"
            | "that"
            | "these"
            | "those"
            | "them"
            | "their"
            | "me"
            | "my"
            | "your"
            | "you"
            | "please"
            | "all"
            | "any"
            | "each"
            | "every"
            | "then"
            | "also"
            | "is"
            | "are"
            | "be"
            | "was"
            | "do"
            | "does"
            | "use"
            | "using"
            | "call"
            | "as"
            | "if"
            | "when"
            | "into"
            | "about"
            | "via"
            | "some"
            | "i"
            | "we"
            | "us"
            | "our"
            | "can"
            | "could"
            | "would"
            | "up"
            | "out"
            | "what"
            | "which"
            | "who"
            | "how"
            | "tool"
            | "tools"
            | "not"
            | "no"
            | "so"
            | "now"
            | "must"
            | "should"
            | "will"
            | "has"
            | "have"
            | "specified"
            | "given"
            | "new"
            | "there"
            | "re"
            | "s"
            | "information"
            | "related"
            | "recent"
            | "latest"
            | "current"
    )
}

/// Things that are secret, under one name.
pub(super) fn noun_group(word: &str) -> Option<&'static str> {
    Some(match word {
        "credential" | "key" | "token" | "secret" | "password" | "apikey" => "secret",
        "web" | "online" | "internet" => "web",
        "email" | "mail" => "mail",
        "weather" | "forecast" | "temperature" => "weather",
        "file" | "document" => "file",
        "customer" | "client" => "customer",
        _ => return None,
    })
}

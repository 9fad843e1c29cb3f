//! Rust sources as the rules see them: a flat row of tokens with lines, doc comments taken out.
//!
//! Promises: text inside comments, doc comments and string literals is never taken for code, and tokens inside macro
//! calls are seen like any others. Leaves out: name resolution; clippy's configuration covers what needs types.

use std::collections::BTreeSet;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::Visit;

/// One identifier, punctuation mark, literal or bracket.
#[derive(Clone, Debug)]
pub struct Token {
    /// As written; a bracket is one character.
    pub text: String,
    /// 1-based line where it starts.
    pub line: usize,
    /// 1-based line where it ends; later than `line` only for literals.
    pub end_line: usize,
}

/// Reads a source into tokens; the error is the parser's sentence.
pub fn tokens(source: &str) -> Result<Vec<Token>, String> {
    let stream = TokenStream::from_str(source).map_err(|error| error.to_string())?;
    let mut row = Vec::new();
    flatten(stream, &mut row);
    Ok(row)
}

fn flatten(stream: TokenStream, row: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        let skipped = doc_attribute_len(&trees[at..]);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        match &trees[at] {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(row, open, group.span_open());
                flatten(group.stream(), row);
                push(row, close, group.span_close());
            }
            leaf => push(row, &leaf.to_string(), leaf.span()),
        }
        at += 1;
    }
}

/// How many trees at the front are a doc comment (`# [doc = ..]` or `# ! [doc = ..]`); 0 when none.
fn doc_attribute_len(trees: &[TokenTree]) -> usize {
    let is_punct = |tree: Option<&TokenTree>, mark: char| matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
    if !is_punct(trees.first(), '#') {
        return 0;
    }
    let at = if is_punct(trees.get(1), '!') { 2 } else { 1 };
    let Some(TokenTree::Group(group)) = trees.get(at) else {
        return 0;
    };
    let mut inside = group.stream().into_iter();
    let is_doc = matches!(inside.next(), Some(TokenTree::Ident(ident)) if ident == "doc");
    if is_doc && is_punct(inside.next().as_ref(), '=') { at + 1 } else { 0 }
}

fn push(row: &mut Vec<Token>, text: &str, span: proc_macro2::Span) {
    if !text.is_empty() {
        row.push(Token {
            text: text.to_owned(),
            line: span.start().line,
            end_line: span.end().line,
        });
    }
}

/// The lines that hold code: not blank, not only a comment.
pub fn code_lines(tokens: &[Token]) -> BTreeSet<usize> {
    tokens.iter().flat_map(|token| token.line..=token.end_line).collect()
}

/// A function's place in its file.
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of its signature, attributes and docs not counted.
    pub first_line: usize,
    /// Line of its closing brace.
    pub last_line: usize,
    /// Whether it is a test or stands in a module built only for tests.
    pub is_test: bool,
    /// Whether it is nothing but one `match` whose arms do one line each: a table.
    pub is_table: bool,
}

/// All functions with a body, nested ones and methods too.
pub fn functions(source: &str) -> Result<Vec<Function>, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut walk = Walk::default();
    walk.visit_file(&file);
    Ok(walk.functions)
}

#[derive(Default)]
struct Walk {
    functions: Vec<Function>,
    test_modules: usize,
}

impl Walk {
    fn note(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        block: &syn::Block,
    ) {
        self.functions.push(Function {
            name: signature.ident.to_string(),
            first_line: signature.fn_token.span.start().line,
            last_line: block.brace_token.span.close().end().line,
            is_test: self.test_modules > 0 || is_test_only(attributes),
            is_table: is_table(block),
        });
    }
}

fn is_table(block: &syn::Block) -> bool {
    let [syn::Stmt::Expr(syn::Expr::Match(table), None)] = &block.stmts[..] else {
        return false;
    };
    let line = |span: proc_macro2::Span| span.start().line;
    table.arms.iter().all(|arm| {
        let end = arm.comma.as_ref().map(|comma| line(comma.span));
        end == Some(line(arm.fat_arrow_token.spans[0]))
    })
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.attrs, &item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.attrs, &item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.attrs, &item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = is_test_only(&item.attrs);
        self.test_modules += usize::from(is_test);
        syn::visit::visit_item_mod(self, item);
        self.test_modules -= usize::from(is_test);
    }
}

/// Whether attributes say `#[test]`, `#[tokio::test]` or `#[cfg(test)]`.
fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test = path.segments.last().is_some_and(|segment| segment.ident == "test");
        let is_cfg_test = path.is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|condition| condition.is_ident("test"));
        is_test || is_cfg_test
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_docs_are_no_code() {
        let source = "//! head\n\n/// doc\nfn a() {\n    // why\n    b(\"x\n y\");\n}\n";
        let lines = code_lines(&tokens(source).unwrap());
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), [4, 6, 7, 8]);
    }

    #[test]
    fn finds_methods_nested_functions_and_tests() {
        let source = "struct A;\nimpl A {\n    fn m() {\n        fn inner() {}\n    }\n}\n#[cfg(test)]\nmod tests {\n    fn helper() {}\n}\n#[test]\nfn t() {}\n";
        let found = functions(source).unwrap();
        let names: Vec<(&str, bool)> = found.iter().map(|f| (f.name.as_str(), f.is_test)).collect();
        assert_eq!(names, [("m", false), ("inner", false), ("helper", true), ("t", true)]);
        assert_eq!((found[0].first_line, found[0].last_line), (3, 5));
    }

    #[test]
    fn broken_source_is_an_error() {
        assert!(tokens("fn a( {").is_err());
        assert!(functions("fn fn").is_err());
    }
}

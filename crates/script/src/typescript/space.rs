//! What is known of a namespace before its blocks are rewritten.

use std::collections::HashSet;

use oxc_ast::ast::{
    Declaration, Statement, TSModuleReference, TSNamespaceDeclaration, TSNamespaceDeclarationBody, TSTypeName,
};

/// A block that is being rewritten.
pub(super) struct Space {
    pub(super) name: String,
    /// What earlier blocks of it export, and this one does not declare.
    pub(super) earlier: HashSet<String>,
}

/// Whether there is code in a namespace.
pub(super) fn has_values(it: &TSNamespaceDeclaration<'_>) -> bool {
    let TSNamespaceDeclarationBody::TSModuleBlock(block) = &it.body else {
        let TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) = &it.body else { return false };
        return has_values(inner);
    };
    block.body.iter().any(|statement| match declaration_of(statement) {
        Some(Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_)) => false,
        Some(Declaration::TSNamespaceDeclaration(inner)) => !inner.declare && has_values(inner),
        _ => true,
    })
}

/// The first name of what an `import x = a.b` stands for.
pub(super) fn first_name(reference: &TSModuleReference<'_>) -> Option<String> {
    match reference {
        TSModuleReference::IdentifierReference(it) => Some(it.name.to_string()),
        TSModuleReference::QualifiedName(it) => {
            let mut left = &it.left;
            while let TSTypeName::QualifiedName(inner) = left {
                left = &inner.left;
            }
            match left {
                TSTypeName::IdentifierReference(it) => Some(it.name.to_string()),
                _ => None,
            }
        }
        TSModuleReference::ExternalModuleReference(_) => None,
    }
}

pub(super) fn declaration_of<'b, 'a>(statement: &'b Statement<'a>) -> Option<&'b Declaration<'a>> {
    match statement {
        Statement::ExportDeclaration(export) => Some(&export.declaration),
        other => other.as_declaration(),
    }
}
